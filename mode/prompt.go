package mode

import (
	"fmt"
	"strings"
)

// Text is the part of the system prompt with the user's wishes for this mode: the mode's own instructions and the rules
// of files. It is "" when there are none.
func (r Rules) Text(m Mode) string {
	var parts []string
	if s := strings.TrimSpace(m.CustomInstructions); s != "" {
		parts = append(parts, "Mode-specific Instructions:\n"+s)
	}
	var files []string
	for _, s := range r.Sections {
		files = append(files, fmt.Sprintf("# Rules from %s:\n%s", s.Title, s.Text))
	}
	if len(files) > 0 {
		parts = append(parts, "Rules:\n\n"+strings.Join(files, "\n\n"))
	}
	if len(parts) == 0 {
		return ""
	}
	return "====\n\nUSER'S CUSTOM INSTRUCTIONS\n\n" +
		"The user gives these instructions. Follow them as well as you can, " +
		"as long as they do not contradict the rules above about tools.\n\n" +
		strings.Join(parts, "\n\n")
}

// Text is the part of the system prompt that lists the modes.
func (s Set) Text() string {
	var b strings.Builder
	b.WriteString("====\n\nMODES\n\n")
	all := s.All()
	for i, m := range all {
		if i == maxListed {
			fmt.Fprintf(&b, "(%d more modes are not listed.)\n", len(all)-i)
			break
		}
		about := m.WhenToUse
		if about == "" {
			about = m.Description
		}
		if about == "" { // Roo uses the first sentence of the role
			about, _, _ = strings.Cut(m.RoleDefinition, ".")
		}
		fmt.Fprintf(&b, "- %s (%s): %s\n", oneLine(m.Name, 100), m.Slug, oneLine(about, 400))
	}
	return strings.TrimRight(b.String(), "\n")
}

// maxListed is how many modes the system prompt lists.
const maxListed = 60

// oneLine puts a text on one line and cuts it after so many characters.
func oneLine(s string, limit int) string {
	s = strings.Join(strings.Fields(s), " ")
	n := 0
	for i := range s {
		if n++; n > limit {
			return s[:i] + "..."
		}
	}
	return s
}
