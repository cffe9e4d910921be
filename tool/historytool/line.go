package historytool

import (
	"bufio"
	"context"
	"errors"
	"io"
	"iter"
	"strings"
)

// lines yields the lines of a text without their ends; of a line over maxLine bytes
// the first ones. It ends with an error that is not io.EOF, or with the context's.
func lines(ctx context.Context, r io.Reader) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		br := bufio.NewReaderSize(r, 64<<10)
		var line []byte
		for {
			if err := ctx.Err(); err != nil {
				yield("", err)
				return
			}
			part, err := br.ReadSlice('\n')
			if room := maxLine - len(line); room > 0 {
				line = append(line, part[:min(room, len(part))]...)
			}
			switch {
			case errors.Is(err, bufio.ErrBufferFull):
				continue
			case err != nil && !errors.Is(err, io.EOF):
				yield("", err)
				return
			}
			if err == nil || len(line) > 0 {
				text := strings.TrimRight(strings.ToValidUTF8(string(line), "\uFFFD"), "\r\n")
				if !yield(text, nil) {
					return
				}
			}
			line = line[:0]
			if err != nil {
				return
			}
		}
	}
}
