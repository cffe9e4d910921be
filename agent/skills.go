package agent

import (
	"fmt"
	"strings"

	"github.com/roost-dev/roost/tool/skilltool"
)

// skillText is the part of the system prompt that lists the mode's skills, "" without
// any. The model gets the text of one with a tool.
func (a *Agent) skillText(slug string) string {
	if _, has := a.tools[skilltool.Name]; !has || a.User.Setup == nil {
		return ""
	}
	list, notes := a.User.Setup.Skills(slug)
	for _, note := range notes {
		a.notice(note)
	}
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("====\n\nSKILLS\n\nThe user has written down how these kinds of work are done. When the task, or a part of it, is of such a kind, get the skill with the tool " +
		skilltool.Name + " before you begin, and follow it. Paths in a skill are relative to its folder.\n")
	for _, k := range list {
		fmt.Fprintf(&b, "\n- %s: %s", k.Name, k.Description)
	}
	return b.String()
}
