package task

import "github.com/roost-dev/roost/task/codec"

// packer writes a snapshot.
type packer struct{ codec.Writer }

// unpacker reads a snapshot.
type unpacker struct{ codec.Reader }

func (p *packer) place(at place) {
	p.Word(at.Blob)
	if at.Blob != "" {
		p.Int(at.Off)
		p.Int(at.Len)
		return
	}
	p.Uint(at.Seq)
	p.Uint(uint64(at.Event))
}

func (p *packer) places(list []place) {
	p.Uint(uint64(len(list)))
	for _, at := range list {
		p.place(at)
	}
}

func (u *unpacker) place() (at place) {
	if at.Blob = u.Word(); at.Blob != "" {
		at.Off, at.Len = u.Int(), u.Int()
		return at
	}
	at.Seq, at.Event = u.Uint(), u.Small()
	return at
}

func (u *unpacker) places() []place {
	n := u.Count()
	if n == 0 {
		return nil
	}
	list := make([]place, n)
	for i := range list {
		list[i] = u.place()
	}
	return list
}
