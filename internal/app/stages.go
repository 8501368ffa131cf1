package app

import (
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// stageVerify is the stage of intake that authenticates a mail; the others are those of
// intake.Acceptor.
const stageVerify = "verify"

// stages measures the way of a report from its arrival to the database, and background jobs.
type stages struct {
	intake *prometheus.HistogramVec
	spool  prometheus.Histogram
	jobs   *prometheus.HistogramVec
	query  prometheus.Histogram
	checks *prometheus.HistogramVec
}

func newStages() stages {
	return stages{
		intake: newTimes("dmarcd_intake_seconds", "Time of a stage of intake: verify authenticates a mail, read parses a message including the wait for its turn, store writes deliveries to the database.",
			buckets[1:], "stage"),
		spool: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "dmarcd_spool_seconds", Help: "Time from the acknowledgement of a message until its reports are in the database.",
			Buckets: []float64{.01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 900, 3600},
		}),
		query: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "dmarcd_database_query_seconds", Help: "Time of a database statement, including the time to read its rows.",
			Buckets: []float64{.0001, .0005, .001, .005, .01, .05, .1, .5, 1, 5, 10, 30},
		}),
		jobs:   newTimes("dmarcd_job_seconds", "Time of a step of a background job, by its name and outcome (done, failed).", buckets[1:], "name", "outcome"),
		checks: newTimes("dmarcd_check_seconds", "Time of a scheduled check of a domain, by kind (dmarc, full) and outcome (done, failed).", buckets[1:], "kind", "outcome"),
	}
}

func (s stages) register(r prometheus.Registerer) {
	r.MustRegister(s.intake, s.spool, s.jobs, s.query, s.checks)
}

func (s stages) observeIntake(stage string, took time.Duration) {
	s.intake.WithLabelValues(stage).Observe(took.Seconds())
}

func (s stages) observeJob(job string, took time.Duration, err error) {
	s.jobs.WithLabelValues(job, outcomeOf(err)).Observe(took.Seconds())
}

func (s stages) observeCheck(full bool, took time.Duration, err error) {
	kind := "dmarc"
	if full {
		kind = "full"
	}
	s.checks.WithLabelValues(kind, outcomeOf(err)).Observe(took.Seconds())
}

// maxLoggedQuery limits a logged statement, in bytes: one that inserts many rows is long.
const maxLoggedQuery = 1000

// slowQuery is the time from which a database statement is logged.
const slowQuery = time.Second

// observeQuery returns a function that measures a database statement, and logs it if it took
// slow or longer. It has placeholders instead of values.
func (s stages) observeQuery(log *slog.Logger, slow time.Duration) func(query string, took time.Duration) {
	return func(query string, took time.Duration) {
		s.query.Observe(took.Seconds())
		if slow == 0 || took < slow {
			return
		}
		text := strings.Join(strings.Fields(query), " ")
		log.Warn("slow query", "took_ms", took.Milliseconds(), "query", text[:min(len(text), maxLoggedQuery)])
	}
}

func outcomeOf(err error) string {
	if err != nil {
		return "failed"
	}
	return "done"
}

// spoolCollector exports figures of the mail spool. Without SMTP they are 0.
type spoolCollector struct{ app *App }

var (
	spoolMessages = prometheus.NewDesc("dmarcd_spool_messages", "Acknowledged messages that are not in the database yet.", nil, nil)
	spoolBytes    = prometheus.NewDesc("dmarcd_spool_bytes", "Size of the mail spool in bytes.", nil, nil)
	spoolAge      = prometheus.NewDesc("dmarcd_spool_age_seconds", "Age of the oldest message in the spool.", nil, nil)
)

// Describe implements prometheus.Collector.
func (spoolCollector) Describe(descs chan<- *prometheus.Desc) {
	descs <- spoolMessages
	descs <- spoolBytes
	descs <- spoolAge
}

// Collect implements prometheus.Collector.
func (c spoolCollector) Collect(out chan<- prometheus.Metric) {
	var (
		messages int
		bytes    int64
		age      time.Duration
	)
	if c.app.spool != nil {
		messages, bytes = c.app.spool.Stats()
		age = c.app.spool.Age()
	}
	out <- prometheus.MustNewConstMetric(spoolMessages, prometheus.GaugeValue, float64(messages))
	out <- prometheus.MustNewConstMetric(spoolBytes, prometheus.GaugeValue, float64(bytes))
	out <- prometheus.MustNewConstMetric(spoolAge, prometheus.GaugeValue, age.Seconds())
}
