"""From what was typed to frozen cells: arguments, help, composition and configuration."""
