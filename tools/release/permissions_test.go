package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestChartPermissions checks that no container of the chart has more rights than it needs.
func TestChartPermissions(t *testing.T) {
	t.Parallel()
	text, err := render(everything)
	if err != nil {
		t.Fatal(err)
	}
	var pods int
	for _, object := range decode(t, text) {
		var name string
		var pod corev1.PodSpec
		switch object := object.(type) {
		case *appsv1.StatefulSet:
			name, pod = object.Name, object.Spec.Template.Spec
		case *appsv1.Deployment:
			name, pod = object.Name, object.Spec.Template.Spec
		default:
			continue
		}
		pods++
		if no := pod.AutomountServiceAccountToken; no == nil || *no || pod.HostNetwork || pod.HostPID || pod.HostIPC {
			t.Errorf("%s: the pod can use the cluster or its host", name)
		}
		s := pod.SecurityContext
		if s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: got the security context %v, want no root and the seccomp profile of the runtime", name, s)
		}
		for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
			s := container.SecurityContext
			if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem ||
				s.Privileged != nil || s.RunAsUser != nil || s.Capabilities == nil || len(s.Capabilities.Add) > 0 || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
				t.Errorf("%s, container %s: got the security context %v, want a read-only root and no capabilities", name, container.Name, s)
			}
		}
	}
	if pods != 2 {
		t.Errorf("got %d pods, want those of dmarcd and of PgBouncer", pods)
	}
}

// TestUnitPermissions checks that the systemd unit takes every right that dmarcd does not need.
func TestUnitPermissions(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("../../deploy/dmarcd.service")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for line := range strings.Lines(string(file)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(name, "#") {
			got[name] = append(got[name], value)
		}
	}
	for line := range strings.Lines(`AmbientCapabilities=CAP_NET_BIND_SERVICE
CapabilityBoundingSet=CAP_NET_BIND_SERVICE
DevicePolicy=closed
DynamicUser=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
NoNewPrivileges=yes
PrivateDevices=yes
PrivateTmp=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHome=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
ProtectSystem=strict
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
StateDirectoryMode=0700
SystemCallArchitectures=native
UMask=0077
`) {
		name, want, _ := strings.Cut(strings.TrimSpace(line), "=")
		if !slices.Equal(got[name], []string{want}) {
			t.Errorf("%s: got %q, want %q", name, got[name], want)
		}
	}
	if want := []string{"@system-service", "~@privileged"}; !slices.Equal(got["SystemCallFilter"], want) {
		t.Errorf("SystemCallFilter: got %q, want %q", got["SystemCallFilter"], want)
	}
	if got["ReadWritePaths"] != nil {
		t.Errorf("the unit can write to %q", got["ReadWritePaths"])
	}
}
