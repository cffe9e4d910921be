package roofmt

import "strings"

// UsersWords returns the user's part of a text block of a message to the model, without the tags that tools put around
// it and without details of the surroundings before it. own reports whether there were such tags.
func UsersWords(text string) (words string, own bool) {
	text = strings.TrimSpace(text)
	if details, ok := strings.CutPrefix(text, "<environment_details>"); ok {
		_, text, _ = strings.Cut(details, "</environment_details>")
	}
	for _, tag := range []string{"user_message", "task", "feedback", "answer", "user_input"} {
		_, rest, ok := strings.Cut(text, "<"+tag)
		attributes, rest, closed := strings.Cut(rest, ">")
		if ok && closed && (attributes == "" || attributes[0] == ' ') {
			words, _, _ = strings.Cut(rest, "</"+tag+">")
			return strings.TrimSpace(words), true
		}
	}
	return strings.TrimSpace(text), false
}
