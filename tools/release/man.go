package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// ask runs the program that was built for this machine, in a home without settings, and gives what it prints.
type ask func(args ...string) (string, error)

// asking asks a program; home is an empty folder.
func asking(ctx context.Context, program, home string) ask {
	return func(args ...string) (string, error) {
		var stderr strings.Builder
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Env = []string{"HOME=" + home, "USERPROFILE=" + home, "SystemRoot=" + os.Getenv("SystemRoot")}
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("roost %s: %w: %s", strings.Join(args, " "), err, stderr.String())
		}
		return string(out), nil
	}
}

// command is a command of the program with its page of help.
type command struct {
	Path  []string // without "roost"
	Short string
	Help  string
}

func (c command) name() string { return strings.Join(append([]string{"roost"}, c.Path...), "-") }

// commandsOf lists the root command and all below it, with their help.
func commandsOf(roost ask) ([]command, error) {
	all := []command{{Short: "run the tasks of coding agents, and keep them"}}
	for i := 0; i < len(all); i++ { // the list grows
		out, err := roost(append(append([]string{"__complete", "help"}, all[i].Path...), "")...)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(out) {
			name, short, found := strings.Cut(strings.TrimSpace(line), "\t")
			if !found { // behind the commands are the topics, which begin with "topics", and a directive
				break
			}
			if name != "help" {
				all = append(all, command{Path: append(slices.Clone(all[i].Path), name), Short: short})
			}
		}
	}
	var group sync.WaitGroup
	slots, errs := make(chan struct{}, runtime.NumCPU()), make([]error, len(all))
	for i := range all {
		group.Go(func() {
			slots <- struct{}{}
			all[i].Help, errs[i] = roost(append([]string{"help"}, all[i].Path...)...)
			<-slots
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// manPages renders a page for each command. That of the program itself also has the topics of help.
func manPages(roost ask, r release) ([]file, error) {
	all, err := commandsOf(roost)
	if err != nil {
		return nil, err
	}
	var out []file
	for _, c := range all {
		if len(c.Path) == 0 {
			for _, topic := range []string{"environment", "exit-codes"} {
				text, err := roost("help", topic)
				if err != nil {
					return nil, err
				}
				c.Help += "\n" + text
			}
		}
		page := manPage(c, r)
		page += ".SH \"SEE ALSO\"\n" + seeAlso(c, all)
		out = append(out, plain(c.name()+".1", []byte(page)))
	}
	return out, nil
}

// seeAlso names the command above and those below.
func seeAlso(c command, all []command) string {
	var names []string
	for _, o := range all {
		near := len(o.Path) == len(c.Path)+1 && slices.Equal(o.Path[:len(c.Path)], c.Path) ||
			len(o.Path) == len(c.Path)-1 && slices.Equal(o.Path, c.Path[:len(o.Path)])
		if near {
			names = append(names, `\fB`+roff(o.name())+`\fR(1)`)
		}
	}
	return strings.Join(names, ",\n") + "\n"
}

var (
	heading = regexp.MustCompile(`^[A-Z][A-Za-z, ]{1,70}:$`)
	// Two columns are two spaces apart, or one behind a long name of a variable.
	row = regexp.MustCompile(`^( +)(\S.*? |[A-Z0-9_]{4,}) +(\S.*)$`)
	// headings are the names that manuals use for what help calls otherwise.
	headings = map[string]string{
		"Usage": "SYNOPSIS", "Flags": "OPTIONS", "Global Flags": "GLOBAL OPTIONS", "Examples": "EXAMPLES",
		"Available Commands": "COMMANDS", "Exit codes": "EXIT STATUS",
		"Variables override the settings file, and flags override both": "ENVIRONMENT",
	}
)

// manPage renders a page of help in roff: text in front of the first heading is the description; a section whose lines
// have two columns is a list of terms, another one stays as it is typed.
func manPage(c command, r release) string {
	var b strings.Builder
	name := c.name()
	date := r.Commit.Time.Format("2006-01-02")
	fmt.Fprintf(&b, ".TH %s 1 %s %s \"Roost\"\n", quoted(strings.ToUpper(name)), quoted(date), quoted("Roost "+r.Version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(lowerFirst(c.Short)))
	intro, sections := helpSections(c.Help)
	slices.SortStableFunc(sections, func(x, y section) int { return rank(x) - rank(y) })
	described := false
	describe := func() {
		if described {
			return
		}
		described = true
		if strings.Join(intro, "\n") == c.Short {
			return // NAME says it
		}
		b.WriteString(".SH DESCRIPTION\n" + paragraphs(intro))
	}
	for _, s := range sections {
		if s.title != "SYNOPSIS" {
			describe()
		}
		fmt.Fprintf(&b, ".SH %s\n%s", quoted(strings.ToUpper(s.title)), s.body())
	}
	describe()
	return b.String()
}

type section struct {
	title string
	lines []string
}

// rank puts the synopsis first; the other sections stay as help orders them.
func rank(s section) int {
	if s.title == "SYNOPSIS" {
		return 0
	}
	return 1
}

// helpSections divides a page of help at its headings.
func helpSections(help string) (intro []string, sections []section) {
	lines := strings.Split(strings.TrimSpace(help), "\n")
	for i, line := range lines {
		indented := i+1 < len(lines) && strings.HasPrefix(lines[i+1], " ")
		switch {
		case heading.MatchString(line) && indented && (i == 0 || lines[i-1] == ""):
			title := strings.TrimSuffix(line, ":")
			if known := headings[title]; known != "" {
				title = known
			}
			sections = append(sections, section{title: title})
		case strings.HasPrefix(line, `Use "roost `): // which a manual need not say
		case len(sections) > 0:
			sections[len(sections)-1].lines = append(sections[len(sections)-1].lines, line)
		default:
			intro = append(intro, line)
		}
	}
	for len(intro) > 0 && intro[len(intro)-1] == "" {
		intro = intro[:len(intro)-1]
	}
	return intro, sections
}

func (s section) body() string {
	indent := ""
	for _, line := range s.lines {
		m := row.FindStringSubmatch(line)
		blank := strings.TrimSpace(line) == ""
		if s.title == "SYNOPSIS" || s.title == "EXAMPLES" || !blank && m == nil && !strings.HasPrefix(line, "        ") {
			return verbatim(s.lines)
		}
		if m != nil && (indent == "" || len(m[1]) < len(indent)) {
			indent = m[1]
		}
	}
	var b strings.Builder
	for _, line := range s.lines {
		m := row.FindStringSubmatch(line)
		switch {
		case strings.TrimSpace(line) == "":
		case m != nil && len(m[1]) <= len(indent)+6:
			fmt.Fprintf(&b, ".TP\n\\fB%s\\fR\n%s\n", roff(strings.TrimSpace(m[2])), roff(m[3]))
		default: // the rest of a long row
			b.WriteString(roff(strings.TrimSpace(line)) + "\n")
		}
	}
	return b.String()
}

func paragraphs(lines []string) string {
	var b strings.Builder
	for i := 0; i < len(lines); i++ {
		switch {
		case lines[i] == "":
			b.WriteString(".PP\n")
		case strings.HasPrefix(lines[i], " "):
			from := i
			for i+1 < len(lines) && strings.HasPrefix(lines[i+1], " ") {
				i++
			}
			b.WriteString(verbatim(lines[from : i+1]))
		default:
			b.WriteString(roff(lines[i]) + "\n")
		}
	}
	return b.String()
}

func verbatim(lines []string) string {
	var b strings.Builder
	b.WriteString(".nf\n")
	for _, line := range strings.Split(strings.Trim(strings.Join(lines, "\n"), "\n"), "\n") {
		b.WriteString(roff(strings.TrimPrefix(line, "  ")) + "\n")
	}
	b.WriteString(".fi\n")
	return b.String()
}

// roff is a line of text as roff prints it: nothing in it is a request or an escape.
func roff(line string) string {
	line = strings.NewReplacer(`\`, `\e`, `-`, `\-`, `'`, `\(aq`, "`", `\(ga`, `^`, `\(ha`, `~`, `\(ti`).Replace(line)
	if strings.HasPrefix(line, ".") {
		line = `\&` + line
	}
	return line
}

// quoted is an argument of a request.
func quoted(text string) string { return `"` + strings.ReplaceAll(roff(text), `"`, `\(dq`) + `"` }

func lowerFirst(text string) string {
	if len(text) > 1 && text[1] >= 'a' && text[1] <= 'z' {
		return strings.ToLower(text[:1]) + text[1:]
	}
	return text
}

// completions are the scripts of the shells, named as the shells look for them.
func completions(roost ask) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		text, err := roost("completion", shell)
		if err != nil {
			return nil, err
		}
		out[shell] = []byte(text)
	}
	return out, nil
}
