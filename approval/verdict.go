package approval

import (
	"fmt"
	"slices"
	"strings"
)

// Verdict is the result of judging a command line by patterns.
type Verdict struct {
	State  State  `json:"decision"`
	Parts  []Part `json:"parts"` // as far as the line could be read; never nil
	Reason string `json:"reason"`

	unsure bool // a deny pattern may cover it
}

// rule names the pattern that decided; of an allowed chain, all of them.
func (v Verdict) rule(s State) string {
	var rules []string
	for _, p := range v.Parts {
		if p.State == s && !slices.Contains(rules, p.Rule) {
			rules = append(rules, p.Rule)
		}
	}
	if s == Deny && len(rules) > 1 {
		return rules[0]
	}
	return strings.Join(rules, ", ")
}

// Command judges a command line by patterns alone.
func Command(line string, allow, deny []string) Verdict {
	denies, allows := patterns(deny), patterns(allow)
	if strings.TrimSpace(line) == "" {
		return Verdict{State: Ask, Parts: []Part{}, Reason: "the command line is empty"}
	}
	seen := scanDenied(line, denies)
	v := Verdict{State: Ask, Parts: seen.parts, unsure: seen.unsure != "" && len(denies) > 0}
	if v.Parts == nil {
		v.Parts = []Part{}
	}
	if rule := v.rule(Deny); rule != "" {
		v.State, v.Reason = Deny, fmt.Sprintf("the pattern %q denies it", rule)
		return v
	}
	if v.unsure {
		v.Reason = seen.unsure + ", so a deny pattern cannot be ruled out"
		return v
	}
	list, why := plainCommands(line)
	if why != "" {
		v.Reason = why
		return v
	}
	return judgeChain(v, list, allows)
}

// judgeChain judges the simple commands of a line, each on its own: all of them must be allowed. The reason is that of
// the first one that is not.
func judgeChain(v Verdict, list []simple, allows []pattern) Verdict {
	parts := make([]Part, 0, len(list))
	refused, allowed := "", ""
	for _, c := range list {
		part := Part{Text: c.text, State: Ask}
		rule, why := allowedBy(c.words, allows)
		switch {
		case why == "":
			part.Rule, part.State = rule, Allow
			allowed = fmt.Sprintf("the pattern %q allows it", rule)
		case refused == "" && len(list) > 1:
			refused = fmt.Sprintf("%s: %s", c.text, why)
		case refused == "":
			refused = why
		}
		parts = append(parts, part)
	}
	v.Parts = parts
	if refused != "" {
		v.Reason = refused
		return v
	}
	v.State, v.Reason = Allow, allowed
	if len(list) > 1 {
		v.Reason = "each of its commands is allowed"
	}
	return v
}

// allowedBy is the pattern that allows a simple command, or the reason why none does.
func allowedBy(words []string, allows []pattern) (rule, why string) {
	why = "no pattern allows it"
	for _, p := range allows {
		if !hasPrefix(words, p.words) {
			continue
		}
		if not := unnamedProgram(words, p.words); not != "" {
			why = not
			continue
		}
		if not := beyondPattern(words, len(p.words)); not != "" {
			why = not
			continue
		}
		return p.text, ""
	}
	return "", why
}

func patterns(texts []string) []pattern {
	var out []pattern
	for _, t := range texts {
		if w := strings.Fields(t); len(w) > 0 {
			env := 0
			for env < len(w) && assignment(w[env]) {
				env++
			}
			out = append(out, pattern{t, w, env})
		}
	}
	return out
}

func hasPrefix(words, p []string) bool {
	return len(words) >= len(p) && slices.Equal(words[:len(p)], p)
}

// Pattern proposes the pattern that a person means by "always": the program, or the program and its subcommand where it
// has some. "" when no pattern would ever match this line.
func Pattern(line string) string {
	list, why := plainCommands(line)
	if why != "" || len(list) != 1 {
		return ""
	}
	words := list[0].words
	n := 1
	if subcommands[words[0]] {
		n = 2
		if len(words) < 2 || strings.HasPrefix(words[1], "-") {
			return ""
		}
		if len(words) > 2 && (words[1] == "run" || words[1] == "run-script") && !strings.HasPrefix(words[2], "-") {
			n = 3
		}
	}
	p := strings.Join(words[:n], " ")
	if Command(line, []string{p}, nil).State != Allow {
		return ""
	}
	return p
}

// subcommands are programs whose first word alone is not specific enough.
var subcommands = wordSet("git", "go", "npm", "pnpm", "yarn", "bun", "cargo", "docker", "podman", "kubectl", "gh",
	"apt", "apt-get", "brew", "pip", "pip3", "dotnet", "terraform", "systemctl", "make", "python", "python3", "node")
