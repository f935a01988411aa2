#!/bin/sh
# rows.sh FIRST COUNT LABEL: rows for COPY ... FROM PROGRAM: a number and a label
awk -v first="$1" -v count="$2" -v label="$3" 'BEGIN {
	for (i = 0; i < count; i++)
		printf "%.0f\t%s%.0f\n", first + i, label, first + i
}'
