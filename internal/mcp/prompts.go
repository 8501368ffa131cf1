package mcp

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dmarcd/dmarcd"
)

// The texts of the prompts; DOMAIN stands for the domain.
const (
	explainText = `Explain the state of the domain DOMAIN to someone who is responsible for its mail, but no expert of DNS.
Call get_advice, list_findings, list_senders and list_events for it. Say the conclusion first: whether others can send mail as the domain, and whether its own mail passes DMARC.
Then give the evidence in figures, explain each finding that matters in one sentence, and end with the next action and why it is the next. Do not guess what the tools do not say.`
	planText = `Plan the way of the domain DOMAIN to p=reject.
Call get_advice, list_senders and list_findings for it, and simulate_policy with p=quarantine and with p=reject.
List the steps in their order. For each, name the exact DNS record or the change at the sender, who has to do it, how many legitimate messages of 30 days it affects, and how to tell that it worked.
Name the senders that need a decision by a person, and ask for it. Do not propose p=reject while it affects legitimate mail. Change nothing without being asked.`
)

func addPrompts(server *sdk.Server) {
	for _, p := range []struct{ name, title, description, text string }{
		{"explain_domain", "Explain this domain", "Explains the state of a domain: who can send mail as it, what passes DMARC, and what to do next.", explainText},
		{"plan_reject", "Plan the way to reject", "Plans the steps until the policy of a domain is p=reject, without loss of legitimate mail.", planText},
	} {
		prompt := &sdk.Prompt{
			Name: p.name, Title: p.title, Description: p.description,
			Arguments: []*sdk.PromptArgument{{Name: "domain", Description: "a domain of the team, such as example.com", Required: true}},
		}
		server.AddPrompt(prompt, func(_ context.Context, request *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			name, err := dmarcd.ParseName(request.Params.Arguments["domain"])
			if err != nil {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "The argument domain must be a domain name."}
			}
			return &sdk.GetPromptResult{Description: p.description, Messages: []*sdk.PromptMessage{
				{Role: "user", Content: &sdk.TextContent{Text: strings.ReplaceAll(p.text, "DOMAIN", name)}},
			}}, nil
		})
	}
}
