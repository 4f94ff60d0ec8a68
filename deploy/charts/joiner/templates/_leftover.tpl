{{/* A leftover is a value of Karpenter's charts before 1.0. The chart ignores it, as Karpenter's current chart does, and reports its replacement
("leftovers" of values.rules.json). It uses only the cluster's name, if settings.clusterName is not set.

joiner.leftover prints "yes" if "value" at "path" is a leftover, or a map that contains only leftovers. */}}
{{- define "joiner.leftover" -}}
{{- if hasKey .rules.leftovers .path -}}
yes
{{- else if and (kindIs "map" .value) .value -}}
{{- $all := "yes" -}}
{{- range $key, $item := .value -}}
{{- if not (include "joiner.leftover" (dict "value" $item "path" (printf "%s.%s" $.path $key) "rules" $.rules)) -}}{{- $all = "" -}}{{- end -}}
{{- end -}}
{{- $all -}}
{{- end -}}
{{- end -}}

{{/* joiner.leftovers prints a line for each leftover among the values: "settings.aws.clusterName is ignored: set settings.clusterName". */}}
{{- define "joiner.leftovers" -}}
{{- $rules := .Files.Get "values.rules.json" | fromJson -}}
{{- $lines := list -}}
{{- range $path := keys $rules.leftovers | sortAlpha -}}
{{- $value := $.Values -}}
{{- range $key := splitList "." $path -}}
{{- $value = kindIs "map" $value | ternary (get ($value | default dict) $key) "" -}}
{{- end -}}
{{- if $value -}}
{{- $lines = append $lines (printf "%s is ignored: %s" $path (get $rules.leftovers $path)) -}}
{{- end -}}
{{- end -}}
{{- if and (not .Values.settings.clusterName) (include "joiner.clusterName" .) -}}
{{- $lines = append $lines (printf "settings.clusterName is not set: %s is used, from a value of an older chart" (include "joiner.clusterName" .)) -}}
{{- end -}}
{{- join "\n" $lines -}}
{{- end -}}

{{/* joiner.clusterName prints settings.clusterName, or the cluster's name from leftovers if they all agree. */}}
{{- define "joiner.clusterName" -}}
{{- $names := list -}}
{{- if kindIs "string" .Values.clusterName -}}{{- $names = append $names .Values.clusterName -}}{{- end -}}
{{- if kindIs "map" .Values.settings.aws -}}{{- with .Values.settings.aws.clusterName -}}{{- $names = append $names . -}}{{- end -}}{{- end -}}
{{- $names = $names | uniq | compact -}}
{{- if .Values.settings.clusterName -}}
{{- .Values.settings.clusterName -}}
{{- else if eq (len $names) 1 -}}
{{- first $names -}}
{{- end -}}
{{- end -}}
