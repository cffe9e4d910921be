package approval

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Roo are Roo's settings for auto-approval, under Roo's names.
type Roo struct {
	Enabled      bool        `json:"autoApprovalEnabled"`
	Read         bool        `json:"alwaysAllowReadOnly"`
	ReadOutside  bool        `json:"alwaysAllowReadOnlyOutsideWorkspace"`
	Write        bool        `json:"alwaysAllowWrite"`
	WriteOutside bool        `json:"alwaysAllowWriteOutsideWorkspace"`
	Execute      bool        `json:"alwaysAllowExecute"`
	Mode         bool        `json:"alwaysAllowModeSwitch"`
	Subtasks     bool        `json:"alwaysAllowSubtasks"`
	MCP          bool        `json:"alwaysAllowMcp"`
	Allowed      []string    `json:"allowedCommands"`
	Denied       []string    `json:"deniedCommands"`
	MaxRequests  *float64    `json:"allowedMaxRequests"` // nil = no limit
	MaxCost      *float64    `json:"allowedMaxCost"`     // US dollars; nil = no limit
	Servers      []RooServer `json:"mcpServers"`
}

// RooServer is an MCP server with its permissions.
type RooServer struct {
	Name  string `json:"name"`
	Tools []struct {
		Name   string `json:"name"`
		Always bool   `json:"alwaysAllow"`
	} `json:"tools"`
}

// ErrNoRoo: the bytes are no settings of Roo's.
var ErrNoRoo = errors.New("these are no settings of Roo's for auto-approval")

// ReadRoo reads the file that Roo's "Export" writes, or its globalSettings alone.
func ReadRoo(data []byte) (Roo, error) {
	var file struct {
		Global json.RawMessage `json:"globalSettings"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return Roo{}, fmt.Errorf("%w: %w", ErrNoRoo, err)
	}
	if len(file.Global) > 0 {
		data = file.Global
	}
	var any map[string]json.RawMessage
	var r Roo
	if err := errors.Join(json.Unmarshal(data, &any), json.Unmarshal(data, &r)); err != nil {
		return Roo{}, fmt.Errorf("%w: %w", ErrNoRoo, err)
	}
	for _, key := range []string{"autoApprovalEnabled", "alwaysAllowReadOnly", "alwaysAllowWrite", "alwaysAllowExecute",
		"allowedCommands", "deniedCommands"} {
		if _, ok := any[key]; ok {
			return r, nil
		}
	}
	return Roo{}, ErrNoRoo
}

// Policy is a policy that allows nothing for which Roo would ask under these settings. It is stricter in three things
// that no policy here allows: protected files, answers to the model's questions, and commands that are more than plain
// words. Commands that Roo denies stay denied, although Roo only denies them while it runs others unasked.
func (r Roo) Policy() Policy {
	p := Policy{Mode: ModeAsk, Deny: trimmed(r.Denied)}
	if !r.Enabled {
		p.AskTools = []string{"*"}
		return p
	}
	if r.Execute {
		// Roo's "*" allows every command; here no pattern does, and the mode "all" is for that.
		p.Allow = slices.DeleteFunc(trimmed(r.Allowed), func(pattern string) bool { return pattern == "*" })
	}
	switch {
	case !r.Read:
		p.AskTools = append(p.AskTools, "read")
	case r.ReadOutside:
		p.Mode = ModeRead
	}
	if r.Write {
		p.AllowTools = append(p.AllowTools, "write")
		if r.WriteOutside {
			p.AllowTools = append(p.AllowTools, "write(/**)")
		}
	}
	if !r.Mode {
		p.AskTools = append(p.AskTools, "switch_mode")
	}
	if !r.Subtasks {
		p.AskTools = append(p.AskTools, "new_task", "finish_task")
	}
	if r.MCP {
		p.AllowTools = append(p.AllowTools, "access_mcp_resource")
		for _, s := range r.Servers {
			for _, t := range s.Tools {
				if t.Always && plainName(s.Name) && plainName(t.Name) {
					p.AllowTools = append(p.AllowTools, "use_mcp_tool("+s.Name+"/"+t.Name+")")
				}
			}
		}
	}
	return p
}

// trimmed are Roo's patterns as patterns of words.
func trimmed(patterns []string) (list []string) {
	for _, p := range patterns {
		if p = strings.TrimSpace(p); p != "" {
			list = append(list, p)
		}
	}
	return list
}

// plainName reports a name without characters that have a meaning in a path pattern.
func plainName(s string) bool {
	return s != "" && s != "." && s != ".." && !strings.ContainsAny(s, "/\\*?[]!#() \t\r\n")
}

// Limits are Roo's limits of auto-approval: the run asks the user after so many requests, or so much money in
// micro-dollars. 0 = no limit.
func (r Roo) Limits() (requests int, micros int64) {
	if r.MaxRequests != nil && *r.MaxRequests >= 1 && *r.MaxRequests < 1<<31 {
		requests = int(*r.MaxRequests)
	}
	if r.MaxCost != nil && *r.MaxCost > 0 && *r.MaxCost < 1e9 {
		micros = int64(*r.MaxCost*1e6 + 0.5)
	}
	return requests, micros
}

// Reached checks whether so many requests and so much money, both since a person last agreed to continue, reach Roo's
// limits before the next request, and returns the text of the row that Roo shows, "" for none. The next request counts;
// money counts with Roo's tolerance of a hundredth of a cent.
func Reached(maxRequests int, maxMicros int64, requests int, micros int64) (row string) {
	const tolerance = 100 // micro-dollars
	switch {
	case maxRequests > 0 && requests+1 > maxRequests:
		return `{"count":` + strconv.Itoa(maxRequests) + `,"type":"requests"}`
	case maxMicros > 0 && micros > maxMicros+tolerance:
		return `{"count":"` + strconv.FormatFloat(float64(maxMicros)/1e6, 'f', 2, 64) + `","type":"cost"}`
	}
	return ""
}
