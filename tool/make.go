package tool

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"

	"github.com/roost-dev/roost/esjson"
)

// made is a tool that is no more than its specification and what plans a call of it.
type made struct {
	spec Spec
	plan func(ctx context.Context, env Env, in Input) (Plan, error)
}

// Make makes a tool of a specification and a function that plans a call with an input that is a JSON object.
func Make(s Spec, plan func(ctx context.Context, env Env, in Input) (Plan, error)) Tool {
	return made{s, plan}
}

func (m made) Spec() Spec { return m.spec }

func (m made) Plan(ctx context.Context, env Env, raw json.RawMessage) (Plan, error) {
	in, err := ReadInput(m.spec.Name, raw)
	if err != nil {
		required, _ := esjson.Get(m.spec.Schema, "required")
		keys := bytes.ReplaceAll(bytes.Trim(required, "[]"), []byte(","), []byte(", "))
		return nil, in.Wrong("the input must be a JSON object with the keys %s", keys)
	}
	return m.plan(ctx, env, in)
}

// Known is a plan whose result is known beforehand: a refusal, or what was read to be able to ask.
type Known struct {
	Of     Ask
	Result Result
}

// Ask implements Plan.
func (k Known) Ask() Ask { return k.Of }

// Run implements Plan.
func (k Known) Run(ctx context.Context, _ Output) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	return k.Result, nil
}

// ImageBlock is an image as a block of content.
func ImageBlock(media string, data []byte) json.RawMessage {
	var source, block esjson.Object
	source.String("type", "base64")
	source.String("media_type", media)
	source.String("data", base64.StdEncoding.EncodeToString(data))
	block.String("type", "image")
	block.Raw("source", source.Bytes())
	return block.Bytes()
}
