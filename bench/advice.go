package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
)

// measureAdvice asks for the advice for all domains of a team with 1,000 domains and many
// records, those of the last 30 days among them.
func measureAdvice(ctx context.Context, s settings, d *daemon) ([]figure, error) {
	const domains = 1000
	today := int64(dmarcd.DayOf(time.Now()))
	if err := addRecords(ctx, d, domains, s.records, today-sampleDay-sampleDays); err != nil {
		return nil, err
	}
	for i := range domains {
		check := dmarcd.Check{
			At: time.Now(), Conclusive: true, Usable: true, Asked: true, Record: "v=DMARC1; p=none", RecordDomain: domainName(i), Policy: "none",
		}
		if _, err := d.team.SaveCheck(ctx, domainName(i), check, dmarcd.Plan{Next: time.Now().Add(24 * time.Hour)}); err != nil {
			return nil, err
		}
	}
	if err := buildRollups(ctx, d); err != nil {
		return nil, err
	}
	cookie, err := signIn(ctx, d)
	if err != nil {
		return nil, err
	}
	var figures []figure
	// The first ones are measured while jobs process the new records.
	for _, path := range []string{"/app/", "/app/print", "/api/insights/advice", "/api/insights/advice?limit=100", "/api/insights/advice?after=n500", "/app/"} {
		var times []time.Duration
		for range pageRounds {
			took, err := timeAnswer(ctx, "http://"+d.address+path, cookie, d.token)
			if err != nil {
				return nil, err
			}
			times = append(times, took)
		}
		first := times[0]
		slices.Sort(times)
		figures = append(figures, figure{
			"`" + path + "`, the first time, p50 and p99",
			fmt.Sprintf("%.1f ms, %.1f ms, %.1f ms", milliseconds(first), milliseconds(times[len(times)/2]), milliseconds(times[len(times)*99/100])),
			"p99 under 100 ms",
		})
	}
	return figures, nil
}

// errLater means that the daemon is busy and asks to try again.
var errLater = errors.New("the daemon asks to try again later")

// timeAnswer returns how long a page or an answer of the API takes.
func timeAnswer(ctx context.Context, url string, cookie *http.Cookie, token string) (time.Duration, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, err
	}
	request.AddCookie(cookie)
	request.Header.Set("Authorization", "Bearer "+token)
	began := time.Now()
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusServiceUnavailable:
		err = fmt.Errorf("%w: %s: %s", errLater, url, answer.Status)
	default:
		err = fmt.Errorf("%s: %s", url, answer.Status)
	}
	return time.Since(began), errors.Join(err, answer.Body.Close())
}
