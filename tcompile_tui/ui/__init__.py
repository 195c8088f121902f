"""The Textual application: looks at run folders, measures nothing."""
