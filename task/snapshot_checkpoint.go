package task

import "encoding/json"

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
	p.bytes(restoring)
	p.uint(uint64(len(s.Checkpoints)))
	for _, c := range s.Checkpoints {
		p.uint(c.Seq)
		p.int(c.At)
		p.int(int64(c.Number))
		p.uint(c.Message)
		p.int(int64(c.Unkept))
		for _, text := range []string{c.Reason, c.Run, c.Call, c.Title, c.Commit, c.Store} {
			p.word(text)
		}
		p.uint(uint64(len(c.Files)))
		for _, f := range c.Files {
			p.word(f.Path)
			p.flags(f.Was != nil)
			if f.Was != nil {
				p.version(*f.Was)
			}
			p.version(f.Now)
		}
	}
	return nil
}

func (p *packer) version(v FileVersion) {
	p.word(v.Kind)
	p.uint(uint64(v.Mode))
	p.int(v.Size)
	p.word(v.Hash)
	p.word(v.Blob)
	p.uint(uint64(v.Dirs))
}

func (u *unpacker) checkpoints(s *State) {
	if raw := u.bytes(); len(raw) > 0 {
		s.Restoring = &Restoring{}
		if json.Unmarshal(raw, s.Restoring) != nil {
			u.fail()
			return
		}
	}
	for range u.count() {
		c := Checkpoint{Seq: u.uint(), At: u.int()}
		c.Number, c.Message, c.Unkept = int(u.int()), u.uint(), int(u.int())
		for _, text := range []*string{&c.Reason, &c.Run, &c.Call, &c.Title, &c.Commit, &c.Store} {
			*text = u.word()
		}
		for range u.count() {
			f := CheckpointFile{Path: u.word()}
			var was bool
			if u.flags(&was); was {
				v := u.version()
				f.Was = &v
			}
			f.Now = u.version()
			if u.bad {
				return
			}
			c.Files = append(c.Files, f)
		}
		if u.bad || c.Number < s.NextCheckpoint() {
			u.fail()
			return
		}
		s.Checkpoints = append(s.Checkpoints, c)
	}
}

func (u *unpacker) version() FileVersion {
	return FileVersion{Kind: u.word(), Mode: uint32(u.uint()), Size: u.int(), Hash: u.word(), Blob: u.word(), Dirs: u.small()}
}
