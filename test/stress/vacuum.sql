-- vacuum.sql: dead rows go, pages are truncated, rows are frozen
\set n random(1, 9)
\if :n <= 3
VACUUM plain;
\elif :n = 4
VACUUM (FREEZE) plain;
\elif :n = 5
VACUUM part;
\elif :n = 6
VACUUM (FREEZE) uniq, child;
\elif :n = 7
VACUUM doc, bulk;
\elif :n = 8
VACUUM load, bulk, parent;
\else
VACUUM (FREEZE, ANALYZE) part, doc;
\endif
\sleep 100 ms
