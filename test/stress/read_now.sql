-- read_now.sql: the oracle in a snapshot of each statement
\set n random(0, 10)
SELECT oracle_of(:n);
\sleep 10 ms
