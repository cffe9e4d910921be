package catalogue

// Models returns the rows of the table.
func Models() []Model { return load().Models }
