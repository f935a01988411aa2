-- rotate.sql: rebuild one relation's filters after the other, all the time
\set n random(0, 8)
SELECT bloomguard_rebuild((ARRAY['plain', 'plain', 'uniq', 'part', 'part', 'doc', 'load', 'child', 'bulk'])[:n + 1]::regclass);
\sleep 40 ms
