module enbloc.dev/node/pause

go 1.26.0
