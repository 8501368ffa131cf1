{{- define "dmarcd.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-dmarcd" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{/* How probes and Prometheus connect: DMARCD_TLS is off by default. */}}
{{- define "dmarcd.scheme" -}}
{{ (.Values.settings.DMARCD_TLS | default "off" | toString) | eq "off" | ternary "HTTP" "HTTPS" }}
{{- end }}

{{- define "dmarcd.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "dmarcd.labels" -}}
{{ include "dmarcd.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" | trimSuffix "." }}
{{- end }}

{{- define "dmarcd.secret" -}}
{{ .Values.secrets.existing | default (include "dmarcd.name" .) }}
{{- end }}

{{- /* The hosts of PostgreSQL, each with its port. */}}
{{- define "dmarcd.hosts" -}}
{{- $hosts := list -}}
{{- range splitList "," (required "Set database.host to the host of PostgreSQL." .Values.database.host) -}}
{{- $hosts = append $hosts (ternary . (printf "%s:%d" . (int $.Values.database.port)) (regexMatch ":[0-9]+$" .)) -}}
{{- end -}}
{{ join "," $hosts }}
{{- end }}

{{- define "dmarcd.database" -}}
{{- $hosts := include "dmarcd.hosts" . -}}
{{- if .Values.pgbouncer.enabled -}}
postgres://{{ .Values.database.user }}:$(DATABASE_PASSWORD)@{{ include "dmarcd.name" . }}-pgbouncer:6432/{{ .Values.database.name }}?sslmode=disable
{{- else -}}
postgres://{{ .Values.database.user }}:$(DATABASE_PASSWORD)@{{ $hosts }}/{{ .Values.database.name }}{{ with .Values.database.parameters }}?{{ . }}{{ end }}
{{- end -}}
{{- end }}

{{- define "dmarcd.spread" -}}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "dmarcd.selector" .root | nindent 12 }}
            app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "dmarcd.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- /* Changes with secrets. Who may read pods may not read these: it is slow to guess them from it. */}}
{{- define "dmarcd.checksum" -}}
{{ derivePassword 1 "maximum" . "dmarcd" "checksum" | sha256sum }}
{{- end }}
