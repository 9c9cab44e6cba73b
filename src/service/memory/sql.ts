const FITTING = `wallet = $1 and tags @> $6::text[] and ($7::timestamptz is null or created_at >= $7::timestamptz)`

/**
 * $1 wallet, $2 vector, $3 terms, $4 how many, $5 embedder, $6 tags, $7 since or null, $8 size of the vector, $9 for each
 * term which word of the question it stands for, $10 its share of a match (1 is the word itself), $11 weight of nearness in
 * the score, $12 nearness that counts without a common word.
 *
 * The score is the share of the question’s words that a memory has, rare words of the wallet weighing more, and the
 * nearness of the vectors. It is rounded before it is compared, for engines add in other orders; of equals the newest
 * comes first.
 */
export const SEARCH = `
with size as (
  select count(*)::float8 as number from memories where wallet = $1
), asked as (
  select * from unnest($3::text[], $9::text[]::int[], $10::text[]::float8[]) as asked (term, word, share)
), known as (
  select term, ln(1 + number / count(*)) as weight
  from (select unnest(terms) as term from memories where wallet = $1 and terms && $3::text[]) said cross join size
  where term = any($3)
  group by term, number
), whole as (
  select sum(coalesce(weight, ln(1 + number))) as weight
  from asked left join known using (term) cross join size
  where share = 1
), worded as (
  select place, sum(weight) as weight
  from (
    select place, word, max(share * weight) as weight
    from (select place, unnest(terms) as term from memories where ${FITTING} and terms && $3::text[]) said
    join asked using (term) join known using (term)
    group by place, word
  ) best
  group by place
), near as (
  select place, greatest(1 - (embedding <=> $2::vector), 0) as nearness
  from memories
  where ${FITTING} and embedder = $5 and vector_dims(embedding) = $8
), found as (
  select place, round(((1 - $11::float8) * coalesce(worded.weight / whole.weight, 0) + $11::float8 * coalesce(nearness, 0))::numeric, 6) as score
  from near full join worded using (place) cross join whole
  where worded.weight > 0 or nearness >= $12::float8
)
select id, text, tags, created_at, score::float8 as score
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
