"""A promise between nodes: who may send how much to a node, whatever arrives there.

The agents of nodes tell each other what waits, and each divides its own downlink among those that send to it.
`division` decides and `messages` writes what is sent; both know neither sockets nor clocks. `sending` is what
a node's own classes have to say, `kernel` what is read and set of them, `talk` the socket, `loop` the rounds.
"""
