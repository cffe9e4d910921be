package task

import (
	"encoding/json"

	"github.com/roost-dev/roost/api"
)

// checkpoints are packed by hand: they grow with the task, and most of their bytes are
// hashes that come again from one to the next.
func (p *packer) checkpoints(s *State) error {
	var restoring []byte
	if s.Restoring != nil {
		var err error
		if restoring, err = encodePlain(s.Restoring); err != nil {
			return err
		}
	}
	p.Bytes(restoring)
	p.Uint(uint64(len(s.Checkpoints)))
	for _, c := range s.Checkpoints {
		p.Uint(c.Seq)
		p.Int(c.At)
		p.Int(int64(c.Number))
		p.Uint(c.Message)
		p.Int(int64(c.Unkept))
		for _, text := range []string{c.Reason, c.Run, c.Call, c.Title, c.Commit, c.Store} {
			p.Word(text)
		}
		p.Uint(uint64(len(c.Files)))
		for _, f := range c.Files {
			p.Word(f.Path)
			p.Flags(f.Was != nil)
			if f.Was != nil {
				p.version(*f.Was)
			}
			p.version(f.Now)
		}
	}
	return nil
}

func (p *packer) version(v api.FileVersion) {
	p.Word(v.Kind)
	p.Uint(uint64(v.Mode))
	p.Int(v.Size)
	p.Word(v.Hash)
	p.Word(v.Blob)
	p.Uint(uint64(v.Dirs))
}

func (u *unpacker) checkpoints(s *State) {
	if raw := u.Bytes(); len(raw) > 0 {
		s.Restoring = &Restoring{}
		if json.Unmarshal(raw, s.Restoring) != nil {
			u.Fail()
			return
		}
	}
	for range u.Count() {
		c := Checkpoint{Seq: u.Uint(), At: u.Int()}
		c.Number, c.Message, c.Unkept = int(u.Int()), u.Uint(), int(u.Int())
		for _, text := range []*string{&c.Reason, &c.Run, &c.Call, &c.Title, &c.Commit, &c.Store} {
			*text = u.Word()
		}
		for range u.Count() {
			f := CheckpointFile{Path: u.Word()}
			var was bool
			if u.Flags(&was); was {
				v := u.version()
				f.Was = &v
			}
			f.Now = u.version()
			if u.Bad {
				return
			}
			c.Files = append(c.Files, f)
		}
		if u.Bad || c.Number < s.NextCheckpoint() {
			u.Fail()
			return
		}
		s.Checkpoints = append(s.Checkpoints, c)
	}
}

func (u *unpacker) version() api.FileVersion {
	return api.FileVersion{Kind: u.Word(), Mode: uint32(u.Uint()), Size: u.Int(), Hash: u.Word(), Blob: u.Word(), Dirs: u.Small()}
}
