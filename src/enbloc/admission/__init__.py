"""Admission: defaults and validation of objects before they are stored."""
