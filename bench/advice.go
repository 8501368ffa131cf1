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
	"github.com/dmarcd/dmarcd/internal/facts"
)

// measureAdvice asks for the advice for all domains of a team with 1,000 domains and many
// records, those of the last 30 days among them.
func measureAdvice(ctx context.Context, s settings, d *daemon) []figure {
	const domains = 1000
	today := int64(dmarcd.DayOf(time.Now()))
	addRecords(ctx, d, domains, s.records, today-sampleDay-sampleDays)
	for i := range domains {
		check := facts.Check{
			At: time.Now(), Conclusive: true, Usable: true, Asked: true, Record: "v=DMARC1; p=none", RecordDomain: domainName(i), Policy: "none",
		}
		get(d.team.SaveCheck(ctx, domainName(i), check, dmarcd.Plan{Next: time.Now().Add(24 * time.Hour)}))
	}
	buildRollups(ctx, d)
	cookie := signIn(ctx, d)
	var figures []figure
	// The first ones are measured while jobs process the new records.
	for _, path := range []string{"/app/", "/app/print", "/api/insights/advice", "/api/insights/advice?limit=100", "/api/insights/advice?after=n500", "/app/"} {
		first, p50, p99, _ := timeAnswers(ctx, "http://"+d.address+path, cookie, d.token)
		figures = append(figures, figure{
			"`" + path + "`, the first time, p50 and p99",
			fmt.Sprintf("%.1f ms, %.1f ms, %.1f ms", first, p50, p99),
			"p99 under 100 ms",
		})
	}
	return figures
}

// errLater means that the daemon is busy and asks to try again.
var errLater = errors.New("the daemon asks to try again later")

// timeAnswers returns how long a page or an answer of the API takes the first time, and the
// median and the 99th percentile of many times, in milliseconds.
func timeAnswers(ctx context.Context, url string, cookie *http.Cookie, token string) (first, p50, p99 float64, size int64) {
	times := make([]time.Duration, pageRounds)
	for n := range times {
		var err error
		times[n], size, err = timeAnswer(ctx, url, cookie, token)
		must(err)
	}
	first = milliseconds(times[0])
	slices.Sort(times)
	return first, milliseconds(times[len(times)/2]), milliseconds(times[len(times)*99/100]), size
}

// timeAnswer returns how long a page or an answer of the API takes, and how many bytes it
// has, compressed.
func timeAnswer(ctx context.Context, url string, cookie *http.Cookie, token string) (took time.Duration, size int64, err error) {
	began := time.Now()
	answer, err := ask(ctx, http.MethodGet, url, cookie, token, "gzip")
	if err != nil {
		return 0, 0, err
	}
	size, err = io.Copy(io.Discard, answer.Body)
	return time.Since(began), size, errors.Join(err, answer.Body.Close())
}

// ask sends a request, and expects to get an answer that is no error.
func ask(ctx context.Context, method, url string, cookie *http.Cookie, token, encoding string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.AddCookie(cookie)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	request.Header.Set("Accept-Encoding", encoding) // so that the client leaves it as it is
	answer, err := http.DefaultClient.Do(request)
	switch {
	case err != nil:
		return nil, err
	case answer.StatusCode == http.StatusServiceUnavailable:
		err = errLater
	case answer.StatusCode != http.StatusOK:
		err = errors.New("an error")
	default:
		return answer, nil
	}
	return nil, errors.Join(fmt.Errorf("%w: %s: %s", err, url, answer.Status), answer.Body.Close())
}
