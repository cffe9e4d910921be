package mode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// RuleFile is a file of rules that comes with an exported mode.
type RuleFile struct {
	Path string // in the folder of the mode's rules, with "/" between its parts
	Text string
}

// Exported reads modes as Roo exports them, in YAML or JSON, with the files of rules that come with them, by slug. A
// path that leads out of the mode's folder, or that no rule would be read from, is left out and listed in Problems.
func Exported(text string) (File, map[string][]RuleFile) {
	root, err := readJSON(strings.TrimPrefix(text, "\ufeff"))
	if err != nil {
		root, err = readRoot(text)
	}
	if err != nil {
		return File{Problems: []string{err.Error()}}, nil
	}
	f := readModes(root, Global, "")
	rules, problems := exportedRules(root.member("customModes"))
	f.Problems = append(f.Problems, problems...)
	return f, rules
}

func exportedRules(list *value) (rules map[string][]RuleFile, problems []string) {
	rules = map[string][]RuleFile{}
	if list == nil || list.kind != aList {
		return rules, nil
	}
	for _, m := range list.list {
		slug, files := m.member("slug"), m.member("rulesFiles")
		if slug == nil || slug.kind != aString || !slugForm.MatchString(slug.text) || files == nil || files.kind != aList {
			continue
		}
		if _, twice := rules[slug.text]; twice {
			continue // the first mode with a slug counts
		}
		kept := []RuleFile{}
		for i, el := range files.list {
			f, err := ruleFile(el)
			switch {
			case err != nil:
				problems = append(problems, fmt.Sprintf("file %d of the rules of mode %q is left out: %v", i+1, slug.text, err))
			case slices.ContainsFunc(kept, func(have RuleFile) bool { return have.Path == f.Path }):
				text := fmt.Sprintf("file %d of the rules of mode %q is left out: %q appears twice", i+1, slug.text, f.Path)
				problems = append(problems, text)
			case len(kept) == maxRuleFiles:
				text := fmt.Sprintf("of the rules of mode %q only the first %d files are used", slug.text, maxRuleFiles)
				problems = append(problems, text)
			default:
				kept = append(kept, f)
				continue
			}
			if len(kept) == maxRuleFiles {
				break
			}
		}
		rules[slug.text] = kept
	}
	return rules, problems
}

// exportedFolder is what Roo puts before the path: the folder itself.
var exportedFolder = regexp.MustCompile(`^(?:\.roo/)?rules-[^/]+/`)

// ruleFile reads one file of an exported mode's rules.
func ruleFile(v *value) (RuleFile, error) {
	name, content := v.member("relativePath"), v.member("content")
	switch {
	case name == nil || name.kind != aString:
		return RuleFile{}, errors.New("it has no path")
	case content == nil || content.kind != aString || content.text == "":
		return RuleFile{}, fmt.Errorf("%q has no text", name.text)
	case len(content.text) > maxRuleFile:
		return RuleFile{}, fmt.Errorf("%q has more than %d bytes", name.text, maxRuleFile)
	case strings.ContainsRune(content.text, 0):
		return RuleFile{}, fmt.Errorf("%q is no text", name.text)
	}
	f := RuleFile{Path: strings.ReplaceAll(name.text, `\`, "/"), Text: content.text}
	if strings.HasPrefix(f.Path, "/") || strings.Contains(f.Path, ":") {
		return RuleFile{}, fmt.Errorf("%q leads out of the folder of its mode's rules", name.text)
	}
	f.Path = exportedFolder.ReplaceAllString(path.Clean(f.Path), "")
	switch {
	case f.Path == "." || !fs.ValidPath(f.Path):
		return RuleFile{}, fmt.Errorf("%q leads out of the folder of its mode's rules", name.text)
	case len(f.Path) > 200 || strings.Count(f.Path, "/") >= maxRuleDepth ||
		strings.ContainsFunc(f.Path, func(r rune) bool { return !unicode.IsPrint(r) }):
		return RuleFile{}, fmt.Errorf("%q is no name for a file of rules", name.text)
	case noRule(path.Base(f.Path)):
		return RuleFile{}, fmt.Errorf("%q is a name that no rules are read from", name.text)
	}
	return f, nil
}

// Encode writes modes as a file of modes, in JSON. Parse reads the same modes back.
func Encode(modes []Mode) []byte {
	type options struct {
		FileRegex   *string `json:"fileRegex,omitempty"`
		Description *string `json:"description,omitempty"`
	}
	given := func(text string, empty bool) *string {
		if text == "" && !empty {
			return nil
		}
		return &text
	}
	type exported struct {
		Slug               string `json:"slug"`
		Name               string `json:"name"`
		RoleDefinition     string `json:"roleDefinition"`
		WhenToUse          string `json:"whenToUse,omitempty"`
		Description        string `json:"description,omitempty"`
		CustomInstructions string `json:"customInstructions,omitempty"`
		Groups             []any  `json:"groups"`
	}
	file := struct {
		CustomModes []exported `json:"customModes"`
	}{[]exported{}}
	for _, m := range modes {
		e := exported{m.Slug, m.Name, m.RoleDefinition, m.WhenToUse, m.Description, m.CustomInstructions, []any{}}
		for _, g := range m.Groups {
			if g.limited || g.FileRegex != "" {
				o := options{given(g.FileRegex, g.emptyRegex), given(g.Description, g.emptyDescription)}
				e.Groups = append(e.Groups, []any{g.Name, o})
			} else {
				e.Groups = append(e.Groups, g.Name)
			}
		}
		file.CustomModes = append(file.CustomModes, e)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(file) // it holds only texts and lists of texts, which cannot fail
	return out.Bytes()
}
