"""The loop IR: nodes, what they mean, and ways to walk, shorten, print, check and run them."""
