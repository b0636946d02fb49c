"""Language-model agents: Markdown files, tools, and conversations that are saved step by step."""
