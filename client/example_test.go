package client_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/client"
)

// exampleServer answers every request with a body.
func exampleServer(status int, body string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
}

func ExampleNew() {
	server := exampleServer(http.StatusOK, `{"team": {"name": "acme"}, "scopes": ["read"], "server": {"version": "0.1.0"}}`)
	defer server.Close()

	c := client.New(server.URL, os.Getenv("DMARCD_API_TOKEN"))
	me, err := c.GetMe(background())
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println(me.Team.Name, me.Scopes, me.Server.Version)
	// Output: acme [read] 0.1.0
}

func ExampleClient_AddDomain() {
	server := exampleServer(http.StatusConflict, `{"message": "The team already has this domain."}`)
	defer server.Close()

	_, err := client.New(server.URL, "token").AddDomain(background(), "example.com")
	if errors.Is(err, dmarcd.ErrConflict) {
		fmt.Println("nothing to do:", err)
	}
	// Output: nothing to do: The team already has this domain.
}

func ExampleClient_ListDomainPostures() {
	server := exampleServer(http.StatusOK, `{"items": [{"domain": "example.com", "stage": "monitoring", "next_action": {"title": "Move to quarantine"}}], "next": null}`)
	defer server.Close()

	c := client.New(server.URL, "token")
	for domain, err := range c.ListDomainPostures(background(), client.PostureFilter{Stage: "monitoring", Sort: "-messages"}) {
		if err != nil {
			log.Print(err)
			return
		}
		fmt.Println(domain.Domain, "–", domain.NextAction.Title)
	}
	// Output: example.com – Move to quarantine
}

func ExampleClient_ListAdvice() {
	server := exampleServer(http.StatusOK, `{"items": [{"domain": "example.com", "next_action": {"record": {"name": "_dmarc.example.com", "type": "TXT", "value": "v=DMARC1; p=reject"}}}], "next": null}`)
	defer server.Close()

	advice, err := client.Collect(client.New(server.URL, "token").ListAdvice(background(), client.AdviceFilter{Domain: "example.com"}))
	if err != nil {
		log.Print(err)
		return
	}
	record := advice[0].NextAction.Record
	fmt.Printf("%s %s %q\n", record.Name, record.Type, record.Value)
	// Output: _dmarc.example.com TXT "v=DMARC1; p=reject"
}

func ExampleClient_UploadReport() {
	server := exampleServer(http.StatusCreated, `{"items": [{"kind": "aggregate", "status": "stored", "messages": 7}]}`)
	defer server.Close()

	receipts, err := client.New(server.URL, "token").UploadReport(background(), strings.NewReader("<feedback>…</feedback>"))
	if err != nil {
		log.Print(err)
		return
	}
	for _, receipt := range receipts.Items {
		fmt.Println(*receipt.Kind, receipt.Status, *receipt.Messages)
	}
	// Output: aggregate stored 7
}

func ExampleClient_ExportRecords() {
	server := exampleServer(http.StatusOK, `{"id": "1", "source_ip": "192.0.2.1", "count": 7}`+"\n")
	defer server.Close()

	filter := client.RecordFilter{Domain: "example.com"}
	filter.From = dmarcd.DayOf(time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC))
	for record, err := range client.New(server.URL, "token").ExportRecords(background(), filter) {
		if err != nil {
			log.Print(err)
			return
		}
		fmt.Println(record.SourceIP, record.Count)
	}
	// Output: 192.0.2.1 7
}

func ExampleClient_FollowEvents() {
	server := exampleServer(http.StatusOK, `{"items": [{"seq": 8, "summary": "The policy of example.com changed."}], "next": null}`)
	defer server.Close()

	last := int64(7) // of the last event that was handled
	for event, err := range client.New(server.URL, "token").FollowEvents(background(), last, client.EventFilter{}) {
		if err != nil {
			log.Print(err)
			return
		}
		fmt.Println(event.Seq, event.Summary)
		break // a real program goes on
	}
	// Output: 8 The policy of example.com changed.
}

func ExampleError() {
	server := exampleServer(http.StatusUnprocessableEntity, `{"message": "The class must be yours.", "code": "invalid_input",
		"errors": [{"field": "class", "code": "invalid_input", "message": "The class must be yours."}]}`)
	defer server.Close()

	_, err := client.New(server.URL, "token").SetSenderClass(background(), "example.com", "sendgrid", new("mine"))
	var answer *client.Error
	if errors.As(err, &answer) {
		for _, field := range answer.Fields {
			fmt.Println(*field.Field, field.Code, field.Message)
		}
	}
	// Output: class invalid_input The class must be yours.
}

func ExampleVerifyWebhook() {
	secret := os.Getenv("DMARCD_WEBHOOK_SECRET") // whsec_…
	http.HandleFunc("POST /dmarcd", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, "", http.StatusBadRequest)
			return
		}
		event, err := client.VerifyWebhook(secret, r.Header, body, time.Now())
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		log.Print(event.ID, " ", event.Summary)
	})
}
