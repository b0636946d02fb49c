"""What comes from outside as YAML: workflow files and settings, checked and compiled to frozen values."""
