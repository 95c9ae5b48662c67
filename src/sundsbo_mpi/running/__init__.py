"""One run on one rank: from the request over preparation and start-up to the last row."""
