package script

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
)

// ErrScript is wrapped by every error about a script's text.
var ErrScript = errors.New("not a valid script")

// The file's shape. A nil pointer means that the member is absent.
type yamlTurn struct {
	Summary   string     `yaml:"summary"`
	Text      string     `yaml:"text"`
	Reasoning string     `yaml:"reasoning"`
	Tools     []yamlCall `yaml:"tools"`
	Usage     *llm.Usage `yaml:"usage"`
	Delay     string     `yaml:"delay"`
	Error     *yamlError `yaml:"error"`
	Expect    []string   `yaml:"expect"`
	Task      *string    `yaml:"task"`
}

type yamlCall struct {
	Name  string `yaml:"name"`
	Input any    `yaml:"input"`
}

type yamlError struct {
	Status  int    `yaml:"status"`
	Message string `yaml:"message"`
	Times   *int   `yaml:"times"`
}

// maxTimes bounds one error entry: a script is read into memory.
const maxTimes = 100_000

// Parse reads a script. It is strict: an unknown key, a wrong type or a turn that
// both fails and replies is an error that wraps ErrScript and names the line.
func Parse(src []byte) (*Script, error) {
	if strings.ContainsRune(string(src), 0) {
		return nil, fmt.Errorf("%w: it holds a NUL byte", ErrScript)
	}
	lines, err := turnLines(src)
	if err != nil {
		return nil, err
	}
	dec := yaml.NewDecoder(strings.NewReader(string(src)), yaml.Strict(), yaml.UseOrderedMap())
	var raw []*yamlTurn
	if err := dec.Decode(&raw); err != nil && !errors.Is(err, io.EOF) {
		return nil, wrap(err)
	}
	if len(raw) != len(lines) {
		return nil, fmt.Errorf("%w: it has %d turns, but the parser read %d", ErrScript, len(lines), len(raw))
	}
	s := &Script{}
	groups := &s.groups
	var g group
	for i, y := range raw {
		if y == nil {
			return nil, fmt.Errorf("%w: line %d: the turn is empty; write {} for a reply with nothing in it", ErrScript, lines[i])
		}
		if y.Task != nil {
			if err := y.heading(); err != nil {
				return nil, fmt.Errorf("%w: line %d: %w", ErrScript, lines[i], err)
			}
			*groups = append(*groups, g)
			g = group{}
			s.tasks = append(s.tasks, &taskPart{text: *y.Task})
			groups = &s.tasks[len(s.tasks)-1].groups
			continue
		}
		t, err := y.turn(lines[i])
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrScript, lines[i], err)
		}
		if y.Summary != "" {
			s.summaries = append(s.summaries, t)
			continue
		}
		if y.Error == nil {
			g.reply = t
			*groups = append(*groups, g)
			g = group{}
			continue
		}
		times := 1
		if y.Error.Times != nil {
			times = *y.Error.Times
		}
		g.failures = append(g.failures, slices.Repeat([]*turn{t}, times)...)
	}
	*groups = append(*groups, g)
	return s, nil
}

// heading checks an entry that precedes the turns of a task: it is no turn itself.
func (y *yamlTurn) heading() error {
	rest := *y
	rest.Task = nil
	switch {
	case strings.TrimSpace(*y.Task) == "":
		return errors.New("task is empty; it needs a text of the task's first message")
	case !reflect.DeepEqual(rest, yamlTurn{}):
		return errors.New("an entry with task must hold no turn: the turns of that task follow it")
	}
	return nil
}

// wrap keeps the parser's message, which shows line, column and the text there.
func wrap(err error) error { return fmt.Errorf("%w: %s", ErrScript, strings.TrimSpace(err.Error())) }

// turnLines returns the line of each turn.
func turnLines(src []byte) ([]int, error) {
	file, err := parser.ParseBytes(src, 0)
	if err != nil {
		return nil, wrap(err)
	}
	var lines []int
	docs := 0
	for _, d := range file.Docs {
		if d.Body == nil {
			continue
		}
		if _, ok := d.Body.(*ast.CommentGroupNode); ok {
			continue
		}
		if docs++; docs > 1 {
			return nil, fmt.Errorf("%w: line %d: a second document begins; a script has only one", ErrScript, d.Body.GetToken().Position.Line)
		}
		switch body := d.Body.(type) {
		case *ast.SequenceNode:
			lines = append(lines, api.Each(body.Values, firstLine)...)
		case *ast.NullNode:
		default:
			return nil, fmt.Errorf("%w: line %d: a script is a list of turns, each beginning with \"- \"", ErrScript,
				body.GetToken().Position.Line)
		}
	}
	return lines, nil
}

// firstLine returns the line on which a node begins. The token of a mapping is its first colon.
func firstLine(n ast.Node) int {
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 {
		return m.Values[0].Key.GetToken().Position.Line
	}
	if m, ok := n.(*ast.MappingValueNode); ok {
		return m.Key.GetToken().Position.Line
	}
	if n == nil || n.GetToken() == nil {
		return 0
	}
	return n.GetToken().Position.Line
}

func (y *yamlTurn) turn(line int) (*turn, error) {
	t := &turn{line: line, text: y.Text, reasoning: y.Reasoning, expect: y.Expect}
	if y.Delay != "" {
		d, err := time.ParseDuration(y.Delay)
		if err != nil || d < 0 {
			return nil, fmt.Errorf("delay %q is not a duration; try: 50ms", y.Delay)
		}
		t.delay = d
	}
	if y.Summary != "" {
		if y.Text != "" || y.Reasoning != "" || len(y.Tools) > 0 || y.Error != nil {
			return nil, errors.New("a summary is no turn; it has neither text nor tools nor an error")
		}
		t.text = y.Summary
	}
	if e := y.Error; e != nil {
		if y.Text != "" || y.Reasoning != "" || len(y.Tools) > 0 || y.Usage != nil {
			return nil, errors.New("a turn either fails or replies; make two turns of it")
		}
		if e.Times != nil && (*e.Times < 0 || *e.Times > maxTimes) {
			return nil, fmt.Errorf("times is %d; it must be between 0 and %d", *e.Times, maxTimes)
		}
		if e.Status != 0 && (e.Status < 400 || e.Status > 599) {
			return nil, fmt.Errorf("status %d is not an HTTP error; leave it out for a broken connection", e.Status)
		}
		t.status, t.message = e.Status, cmp.Or(e.Message, "the script plays an error")
		return t, nil
	}
	if u := y.Usage; u != nil {
		if u.Input < 0 || u.Output < 0 || u.CacheRead < 0 || u.CacheWrite < 0 {
			return nil, errors.New("usage must not be negative")
		}
		t.usage = *u
	}
	for _, c := range y.Tools {
		if c.Name == "" {
			return nil, errors.New("a tool has no name")
		}
		input := json.RawMessage("{}")
		if c.Input != nil {
			m, ok := c.Input.(yaml.MapSlice)
			if !ok {
				return nil, fmt.Errorf("the input of %s is not a mapping", c.Name)
			}
			b, err := toJSON(m)
			if err != nil {
				return nil, fmt.Errorf("the input of %s: %w", c.Name, err)
			}
			input = b
		}
		t.tools = append(t.tools, call{name: c.Name, input: input})
	}
	return t, nil
}

// toJSON encodes a YAML value, keys in the order of the file.
func toJSON(v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return []byte("null"), nil
	case string:
		return esjson.Quote(nil, v), nil
	case bool, int64, uint64, int:
		return fmt.Append(nil, v), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, errors.New("a JSON number must be finite")
		}
		return esjson.Number(nil, v), nil
	case yaml.MapSlice:
		var out esjson.Object
		for _, m := range v {
			value, err := toJSON(m.Value)
			if err != nil {
				return nil, err
			}
			out.Raw(fmt.Sprint(m.Key), value)
		}
		return out.Bytes(), nil
	case []any:
		out, err := api.TryEach(v, toJSON)
		return esjson.List(out), err
	}
	return nil, fmt.Errorf("%T has no form in JSON", v)
}
