"""What is shown in a browser, and to those who collect figures: one plain page, the JSON behind it, `/metrics`."""
