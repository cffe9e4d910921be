package shell

import "github.com/roost-dev/roost/api"

// Word quotes a word so that a shell reads it as one word.
func Word(word string) string { return api.ShellWord(word) }
