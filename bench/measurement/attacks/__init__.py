"""What a hostile pod with CAP_NET_RAW may try, as data: ``known`` has all of it."""
