package export

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// JSON writes one object: the task document, then both histories, one element a line and byte for byte as it is stored,
// unless a secret in it was masked:
//
//	{"task":{...},"ui":[...],"api":[...],"unread":[{history,number,problem}],"masked":0}
func JSON(ctx context.Context, w io.Writer, v *store.View, o Options) (Report, error) {
	var r Report
	m := mask{by: o.Mask}
	out := bufio.NewWriter(w)
	head, err := plain(v.Summary)
	if err != nil {
		return r, trouble(v, "JSON", err)
	}
	fmt.Fprintf(out, "{\"task\":%s", m.json(head))
	for _, h := range []struct {
		name string
		list []*task.Message
	}{{"ui", v.State.UI()}, {"api", v.State.API()}} {
		fmt.Fprintf(out, ",\n%q:[", h.name)
		sep := "\n"
		for e := range elements(ctx, v, h.name, h.list, &r) {
			fmt.Fprintf(out, "%s%s", sep, m.json(e.Raw))
			sep = ",\n"
		}
		fmt.Fprint(out, "]")
	}
	unread, err := plain(append([]Gap{}, r.Unread...))
	r.Masked = m.count
	fmt.Fprintf(out, ",\n\"unread\":%s,\"masked\":%d}\n", unread, r.Masked)
	return r, trouble(v, "JSON", err, ctx.Err(), out.Flush())
}

// plain is JSON without the escapes that only HTML needs.
func plain(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(out.Bytes()), err
}
