"""What work costs on a device."""
