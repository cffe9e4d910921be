package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/url"
	"os"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
)

// List the newest tasks of a server.
func ExampleClient_Tasks() {
	c, err := client.New("http://127.0.0.1:7878", client.Options{Token: os.Getenv("ROOST_TOKEN")})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	page, err := c.Tasks(context.Background(), url.Values{"limit": {"10"}})
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range page.Items {
		fmt.Println(t.ID, t.Status, t.Title)
	}
}

// Start a task and follow it from its first event to the end of its run.
func ExampleClient_Events() {
	c, err := client.New("unix:/run/user/1000/roost/server.sock", client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx := context.Background()
	run, err := c.Start(ctx, api.NewTask{Workspace: "/home/me/garden", Message: &api.Words{Text: "paint the fence"}})
	if err != nil {
		log.Fatal(err)
	}
	for event, err := range c.Events(ctx, run.Task, "0") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(event.ID, event.Type)
		if event.Type == "run.ended" || event.Type == "run.waiting" {
			return
		}
	}
}

// Tell a refusal from a server that cannot be reached.
func ExampleProblem() {
	c, err := client.New("http://127.0.0.1:7878", client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	_, err = c.Task(context.Background(), "0199")
	var refused *client.Problem
	var unreachable *client.Unreachable
	switch {
	case errors.As(err, &refused):
		fmt.Println(refused.Status, refused.Code, refused.Detail)
	case errors.As(err, &unreachable):
		fmt.Println("no server at", unreachable.Base)
	}
}

// Take a task back by two turns, look at what that hides, and undo it.
func ExampleClient_Rewind() {
	c, err := client.New("http://127.0.0.1:7878", client.Options{Token: os.Getenv("ROOST_TOKEN")})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx := context.Background()
	done, err := c.Rewind(ctx, "0199", api.NewRewind{To: "~2"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("removed turns:", done.Turns)
	if _, err := c.Undo(ctx, "0199", api.NewUndo{}); err != nil {
		log.Fatal(err)
	}
}

// Answer every question that waits with its first choice.
func ExampleClient_Questions() {
	c, err := client.New("http://127.0.0.1:7878", client.Options{Token: os.Getenv("ROOST_TOKEN")})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx := context.Background()
	open, err := c.Questions(ctx, "")
	if err != nil {
		log.Fatal(err)
	}
	for _, q := range open {
		if len(q.Choices) == 0 {
			continue
		}
		first := json.RawMessage("1")
		if _, err := c.Answer(ctx, q.ID, api.Answer{Choice: &first}); err != nil {
			log.Fatal(err)
		}
	}
}
