package engine

import (
	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/task"
)

// rules puts the rules of tools that were given in the place of the task's. One that
// cannot be read is an error: a deny that matches nothing would be none.
func rules(s *task.Settings, r Request) error {
	for _, list := range []struct {
		to    *[]string
		given []string
	}{{&s.Tools, r.AllowTools}, {&s.AskTools, r.AskTools}, {&s.DenyTools, r.DenyTools}} {
		for _, text := range list.given {
			if _, err := approval.ParseRule(text); err != nil {
				return &ConfigError{What: "use the rule " + text, Why: err.Error(), Try: `write it like write_to_file, read or "write(docs/**)"`}
			}
		}
		if list.given != nil {
			*list.to = list.given
		}
	}
	return nil
}
