package fold

import (
	"context"
	"iter"

	"github.com/roost-dev/roost/task"
)

// Raws yields the bytes of messages. It reads some at a time, because a history may be larger than memory. A
// message that cannot be read is nil.
func Raws(ctx context.Context, s *task.State, list []*task.Message) iter.Seq2[[]byte, error] {
	const atOnce = 50
	return func(yield func([]byte, error) bool) {
		for from := 0; from < len(list); from += atOnce {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			part := list[from:min(from+atOnce, len(list))]
			all, together := s.Raws(part)
			for i := range part {
				var raw []byte
				if together == nil {
					raw = all[i]
				} else if alone, err := s.Raws(part[i : i+1]); err == nil {
					raw = alone[0]
				}
				if !yield(raw, nil) {
					return
				}
			}
		}
	}
}
