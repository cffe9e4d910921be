package search

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"unicode/utf8"

	"github.com/roost-dev/roost/workspace"
)

// maxSearchLine is how much of a line is searched, in bytes.
const maxSearchLine = 1 << 20

// searchFile gives matching lines and one line around each, up to want groups and
// most lines. A zero byte makes a file binary, and then it gives nothing.
func searchFile(ctx context.Context, f io.Reader, re matcher, want, most int) ([]foundLine, error) {
	br := bufio.NewReaderSize(workspace.NewContextReader(ctx, f), 64<<10)
	var out []foundLine
	var before foundLine
	var beforeText, lower []byte // kept as bytes: few lines are shown
	groups := 0
	after := false // the line before matched
	for n := 1; ; n++ {
		if len(out) >= most {
			return out[:most], nil
		}
		line, err := readLine(br)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if len(line) == 0 && err != nil {
			return out, nil
		}
		if bytes.IndexByte(line, 0) >= 0 {
			return nil, nil
		}
		text := line[:min(len(line), 4*maxFoundLine+8)] // as much as can be shown
		body := bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		hit, matchErr := false, error(nil)
		if re.possible(body, &lower) {
			hit, matchErr = match(ctx, re.re, body)
		}
		switch {
		case matchErr != nil:
			return nil, matchErr
		case hit:
			first := n
			if before.number > 0 {
				first = before.number
			}
			if len(out) == 0 || out[len(out)-1].number < first-1 {
				if groups++; groups > want {
					return out, nil
				}
			}
			if before.number > 0 {
				before.text = string(beforeText)
				out = append(out, before)
			}
			out = append(out, foundLine{n, string(text)})
			after, before = true, foundLine{}
		case after:
			out = append(out, foundLine{n, string(text)})
			after, before = false, foundLine{}
		default:
			before.number, beforeText = n, append(beforeText[:0], text...)
		}
		if err != nil {
			return out, nil
		}
	}
}

// longLine is from how many bytes on a line is matched so that it can be stopped.
const longLine = 4 << 10

// match is re.Match for lines of any length. RE2 takes time in proportion to the
// line, but also to the pattern, and the two can be chosen to make minutes.
func match(ctx context.Context, re *regexp.Regexp, line []byte) (bool, error) {
	if len(line) < longLine {
		return re.Match(line), nil
	}
	r := &runes{ctx: ctx, line: line}
	hit := re.MatchReader(r)
	return hit && r.err == nil, r.err
}

// runes gives a line to a regular expression, until the context ends.
type runes struct {
	ctx  context.Context //nolint:containedctx // lives as long as one match
	line []byte
	n    int
	err  error
}

func (r *runes) ReadRune() (rune, int, error) {
	if r.n++; r.n%64 == 0 && r.err == nil {
		r.err = r.ctx.Err()
	}
	if r.err != nil {
		return 0, 0, r.err
	}
	if len(r.line) == 0 {
		return 0, 0, io.EOF
	}
	c, size := utf8.DecodeRune(r.line)
	r.line = r.line[size:]
	return c, size, nil
}

// readLine gives a line with its end, at most maxSearchLine bytes of it, until the next
// one is read.
func readLine(br *bufio.Reader) ([]byte, error) {
	part, err := br.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return part, err
	}
	line := bytes.Clone(part)
	for {
		part, err := br.ReadSlice('\n')
		if len(line) < maxSearchLine {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}
