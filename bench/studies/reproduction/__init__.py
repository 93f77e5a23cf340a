"""Does what was said and shown follow from what was recorded, and does it come out again?"""
