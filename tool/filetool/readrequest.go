package filetool

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
)

// request is one file that a call of read_file asks for.
type request struct {
	path        string
	indentation bool
	offset      int // 1-based
	limit       int
	hasLimit    bool
	options     indentOptions
	ranges      [][2]int // older calls ask for several ranges of a file
}

// snippet names the wanted part in a few words, as the approval shows it.
func (r request) snippet() string {
	switch {
	case len(r.ranges) > 0:
		s := ""
		for i, g := range r.ranges {
			if i > 0 {
				s += ", "
			}
			s += fmt.Sprintf("lines %d-%d", g[0], g[1])
		}
		return s
	case r.indentation:
		return fmt.Sprintf("indentation mode at line %d", r.options.anchor)
	case r.offset > 1:
		return fmt.Sprintf("lines %d-%d", r.offset, r.offset+r.limit-1)
	case r.hasLimit:
		return fmt.Sprintf("up to %d lines", r.limit)
	}
	return ""
}

// first is the line to open an editor at, 0 when it does not matter.
func (r request) first() int {
	switch {
	case len(r.ranges) > 0:
		return r.ranges[0][0]
	case r.indentation:
		return r.options.anchor
	case r.offset > 1:
		return r.offset
	}
	return 0
}

// requests understands today's shape {path, mode, ...}, {files: [...]},
// {path, start_line, end_line} and the XML text in args.
func readRequests(in tool.Input) ([]request, error) {
	if raw, ok := in.Raw("files"); ok && esjson.TypeOf(raw) == esjson.TypeArray {
		var all []request
		for f := range esjson.Array(raw) {
			if esjson.TypeOf(f) == esjson.TypeString {
				path, _ := esjson.Unquote(f)
				all = append(all, request{path: path, offset: 1, limit: defaultLines})
				continue
			}
			r, err := readRequest(tool.Input{Tool: in.Tool, Object: f})
			if err != nil {
				return nil, err
			}
			all = append(all, r)
		}
		if len(all) == 0 {
			return nil, in.Wrong("\"files\" names no file")
		}
		return all, nil
	}
	if args, ok := in.Text("args"); ok {
		if all := xmlRequests(args); len(all) > 0 {
			return all, nil
		}
		return nil, in.Wrong("\"args\" names no file; call with {\"path\": ...} instead")
	}
	r, err := readRequest(in)
	if err != nil {
		return nil, err
	}
	return []request{r}, nil
}

func readRequest(in tool.Input) (r request, err error) {
	if esjson.TypeOf(in.Object) != esjson.TypeObject {
		return r, in.Wrong("each file must be an object with a \"path\"")
	}
	if r.path, err = in.Need(false, "path", "file_path"); err != nil {
		return r, err
	}
	if r.offset, err = in.Number(1, "offset"); err != nil {
		return r, err
	}
	if r.limit, err = in.Number(defaultLines, "limit"); err != nil {
		return r, err
	}
	_, r.hasLimit = in.Raw("limit")
	if r.offset < 1 || r.limit < 1 {
		return r, in.Wrong("offset and limit count from 1")
	}
	if mode, _ := in.Text("mode"); mode == "indentation" {
		r.indentation = true
		if err := r.readIndentation(in); err != nil {
			return r, err
		}
	}
	return r, r.readOlderRanges(in)
}

func (r *request) readIndentation(in tool.Input) (err error) {
	// The options are nested today and were beside "mode" before.
	from := in
	if raw, ok := in.Raw("indentation"); ok && esjson.TypeOf(raw) == esjson.TypeObject {
		from = tool.Input{Tool: in.Tool, Object: raw}
	}
	o := &r.options
	o.limit = r.limit
	if o.anchor, err = from.Number(r.offset, "anchor_line"); err != nil {
		return err
	}
	if o.levels, err = from.Number(0, "max_levels"); err != nil {
		return err
	}
	if o.maxLines, err = from.Number(0, "max_lines"); err != nil {
		return err
	}
	if o.siblings, err = from.Boolean(false, "include_siblings"); err != nil {
		return err
	}
	if o.header, err = from.Boolean(true, "include_header"); err != nil {
		return err
	}
	if o.levels < 0 || o.maxLines < 0 {
		return in.Wrong("max_levels and max_lines cannot be negative")
	}
	return nil
}

var rangePattern = regexp.MustCompile(`(\d+)\s*-\s*(\d+)`)

func (r *request) readOlderRanges(in tool.Input) error {
	if raw, ok := in.Raw("lineRanges", "line_ranges"); ok {
		for g := range esjson.Array(raw) {
			start, end := 0, 0
			switch esjson.TypeOf(g) {
			case esjson.TypeObject:
				o := tool.Input{Tool: in.Tool, Object: g}
				start, _ = o.Number(0, "start")
				end, _ = o.Number(0, "end")
			case esjson.TypeArray:
				for n := range esjson.Array(g) {
					v, _ := strconv.Atoi(string(n))
					start, end = end, v
				}
			case esjson.TypeString:
				s, _ := esjson.Unquote(g)
				if m := rangePattern.FindStringSubmatch(s); m != nil {
					start, _ = strconv.Atoi(m[1])
					end, _ = strconv.Atoi(m[2])
				}
			}
			r.ranges = append(r.ranges, [2]int{start, end})
		}
	}
	start, err := in.Number(0, "start_line")
	if err != nil {
		return err
	}
	end, err := in.Number(0, "end_line")
	if err != nil {
		return err
	}
	if start > 0 && end > 0 {
		r.ranges = append(r.ranges, [2]int{start, end})
	} else if start > 0 {
		r.offset = start
	}
	for _, g := range r.ranges {
		if g[0] < 1 || g[1] < g[0] {
			return in.Wrong("the line range %d-%d of %s is not one; lines count from 1 and the end is not before "+
				"the start", g[0], g[1], r.path)
		}
	}
	return nil
}

var (
	filePattern = regexp.MustCompile(`(?s)<file>(.*?)</file>`)
	pathPattern = regexp.MustCompile(`(?s)<path>\s*(.*?)\s*</path>`)
	linePattern = regexp.MustCompile(`<line_range>\s*(\d+)\s*-\s*(\d+)\s*</line_range>`)
)

func xmlRequests(args string) []request {
	var all []request
	for _, f := range filePattern.FindAllStringSubmatch(args, -1) {
		p := pathPattern.FindStringSubmatch(f[1])
		if p == nil || p[1] == "" {
			continue
		}
		r := request{path: p[1], offset: 1, limit: defaultLines}
		for _, m := range linePattern.FindAllStringSubmatch(f[1], -1) {
			start, _ := strconv.Atoi(m[1])
			end, _ := strconv.Atoi(m[2])
			if start >= 1 && end >= start {
				r.ranges = append(r.ranges, [2]int{start, end})
			}
		}
		all = append(all, r)
	}
	return all
}
