"""What must be there before a testbed can be: programs, images, machines' disks."""
