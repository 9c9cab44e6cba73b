/** Of each half of a search; the best answer may be low in one of them, not in both. */
const DEPTH = 50
/** The usual weight of ranks against each other (reciprocal rank fusion). */
const CALM = 60

const FITTING = `wallet = $1 and tags @> $6::text[] and ($7::timestamptz is null or created_at >= $7::timestamptz)`

/**
 * $1 wallet, $2 vector, $3 terms, $4 how many, $5 embedder, $6 tags, $7 since or null, $8 size of the vector.
 *
 * Rare words of the wallet weigh more, and short texts come before long ones. Sums are rounded before they are compared: engines add in other orders. What is
 * equal is ordered by its place, the newest first.
 */
export const SEARCH = `
with asked as (
  select term, ln(1 + (select count(*) from memories where wallet = $1)::float8 / count(*)) as weight
  from (select unnest(terms) as term from memories where wallet = $1 and terms && $3::text[]) said
  where term = any($3::text[])
  group by term
), near as (
  select place, row_number() over (order by distance, place desc) as rank
  from (
    select place, round((embedding <=> $2::vector)::numeric, 6) as distance
    from memories
    where ${FITTING} and embedder = $5 and vector_dims(embedding) = $8
    order by distance, place desc
    limit ${DEPTH}
  ) nearest
), worded as (
  select place, row_number() over (order by weight desc, size, place desc) as rank
  from (
    select place, size, round(sum(weight)::numeric, 6) as weight
    from (select place, cardinality(terms) as size, unnest(terms) as term from memories where ${FITTING} and terms && $3::text[]) said
    join asked using (term)
    group by place, size
    order by weight desc, size, place desc
    limit ${DEPTH}
  ) best
), found as (
  select place, (coalesce(1.0 / (${CALM} + near.rank), 0) + coalesce(1.0 / (${CALM} + worded.rank), 0)) * ${(CALM + 1) / 2} as score
  from near full join worded using (place)
)
select id, text, tags, created_at, round(score, 6)::float8 as score
from found join memories using (place)
where wallet = $1
order by found.score desc, place desc
limit $4::int`

/** $1 wallet, $2 place after which to begin, $3 bytes of texts and tags. At least one, unless there is none. */
export const PAGE = `
with next as (
  select id, text, tags, created_at, place, sum(bytes) over (order by place) as upto,
    row_number() over (order by place) as number
  from (select * from memories where wallet = $1 and place > $2::bigint order by place limit 5000) ahead
)
select id, text, tags, created_at, place,
  (select count(*) from memories where wallet = $1 and place > next.place) as remaining
from next
where upto <= $3::bigint or number = 1
order by place`

/** $1 wallet. */
export const USAGE = `
select count(*) as memories, coalesce(sum(bytes), 0) as bytes, min(created_at) as first_at, max(created_at) as last_at
from memories
where wallet = $1`

/** $1 wallet, $2 payment: of what is kept and of what others are about to write. */
export const HELD = `
select count(*) as memories, coalesce(sum(bytes), 0) as bytes
from (
  select bytes from memories where wallet = $1
  union all
  select bytes from pending_memories where wallet = $1 and payment <> $2
) held`
