package store

import "context"

// Refs names every task folder of every source, also empty and damaged ones. No
// task is opened: names cost one look into each source.
func (s *Store) Refs(ctx context.Context) ([]Ref, error) {
	refs, _, err := s.refs(ctx)
	return refs, err
}

// RefsAndSources is Refs, with the state of each source.
func (s *Store) RefsAndSources(ctx context.Context) ([]Ref, []SourceState, error) { return s.refs(ctx) }
