import { InvalidParameter, type JsonObject, type Source } from 'ratecard/handler'
import type { Consulted, Findings, Sanctions } from '../../sources/sanctions.ts'
import type { ListHit } from '../../sources/sanctions/worker.ts'
import type { HandlerWithPreview } from '../catalog.ts'

/** From here on a name is shown, and a person of a lone surname below; a single short word must be all but the same. */
const THRESHOLD = { usual: 0.85, shortWord: 0.95 }
const BANDS = { strong: 0.95, probable: 0.9 }
const SHOWN = 10
const SHOWN_ALIASES = 10
/** The rest is on the list's own page. */
const LONGEST_REMARK = 1000

const NOTICE =
  'A name lookup in the lists under lists_checked, of the dates given there: not a compliance screening and not legal advice. People and companies share names, so compare dates of birth, nationalities and programmes before you conclude anything from a match. No match means that no listed name was found alike; it does not mean that dealing with the name is lawful.'

/**
 * Whether a name resembles one on the sanctions lists that are loaded: a lookup by name alone, with aliases, spellings,
 * scripts, typing errors and word order. `nameSimilarity` defines the score.
 */
export function sanctions(lists: Sanctions, source?: Source): HandlerWithPreview<'util/sanctions'> {
  return {
    run: async ({ name }, { signal }) => {
      if (!/[\p{L}\p{N}].*[\p{L}\p{N}]/su.test(name))
        throw new InvalidParameter('name', 'name must have at least two letters or digits')
      const found = await lists.search({ name, threshold: THRESHOLD, limit: SHOWN }, signal)
      if (found.normalized === '')
        throw new InvalidParameter('name', 'name has no letters that can be compared')
      return {
        source: source === undefined ? found.consulted.map(sourceOf) : [source],
        fetchedAt: new Date(Math.min(...found.consulted.map(({ facts }) => facts.fetchedAt))),
        body: bodyOf(name, found),
        warnings: warningsOf(found),
      }
    },
    preview: previewOf,
  }
}

function bodyOf(name: string, found: Findings): JsonObject {
  const { normalized, threshold, count, hits, consulted, notConsulted } = found
  return {
    query: { name, normalized },
    result: resultOf(hits),
    match_count: count,
    threshold,
    matches: hits.map(matchOf),
    as_of: consulted.map(asOf).sort()[0] ?? null,
    lists_checked: consulted.map(checkedOf),
    lists_not_checked: notConsulted.map(({ id, publisher, title }) => ({
      id,
      publisher,
      title,
    })),
    notice: NOTICE,
  }
}

function resultOf(hits: readonly ListHit[]): string {
  if (hits.length === 0) return 'no_match'
  return hits.some(({ score }) => score >= BANDS.strong) ? 'match' : 'possible_match'
}

function bandOf({ score, surnameOnly, entry }: ListHit): string {
  if (surnameOnly) return entry.kind === 'individual' ? 'surname_only' : 'part_of_name'
  if (score >= BANDS.strong) return 'strong'
  return score >= BANDS.probable ? 'probable' : 'possible'
}

function matchOf(hit: ListHit): JsonObject {
  const { list, entry, name, score, pairs } = hit
  const primary = entry.names[0]?.text ?? name.text
  const aliases = entry.names.slice(1)
  return {
    score: thousandths(score),
    band: bandOf(hit),
    name: primary,
    matched_name: name.text,
    matched_name_kind: name.kind,
    matched_name_weak: name.weak,
    type: entry.kind,
    list,
    list_entry_id: entry.uid,
    programmes: entry.programmes,
    dates_of_birth: entry.datesOfBirth,
    nationalities: entry.nationalities,
    identifiers: entry.identifiers,
    title: entry.title,
    aliases: aliases.slice(0, SHOWN_ALIASES).map(({ text }) => text),
    alias_count: aliases.length,
    remarks: entry.remarks === null ? null : entry.remarks.slice(0, LONGEST_REMARK),
    url: entry.url,
    score_details: {
      pairs: pairs.map(({ asked, listed, likeness }) => ({ asked, listed, likeness: thousandths(likeness) })),
    },
  }
}

function checkedOf({ terms, facts }: Consulted): JsonObject {
  return {
    id: terms.id,
    publisher: terms.publisher,
    title: terms.title,
    as_of: asOf({ terms, facts }),
    published_at: facts.publishedAt,
    fetched_at: new Date(facts.fetchedAt).toISOString(),
    entries: facts.entries,
    sha256: facts.sha256,
    max_age_hours: terms.maxAge / 3_600_000,
  }
}

/** The day of the list; where it does not say one, the day it was read. */
function asOf({ facts }: Consulted): string {
  return facts.publishedAt ?? new Date(facts.fetchedAt).toISOString().slice(0, 10)
}

function sourceOf({ terms, facts }: Consulted): Source {
  return {
    name: `${terms.publisher}: ${terms.title}`,
    url: terms.page,
    licence: terms.licence,
    ...(facts.publishedAt === null ? {} : { published_at: facts.publishedAt }),
  }
}

function warningsOf({ words, count, hits }: Findings) {
  const single =
    words === 1
      ? [
          {
            code: 'single_token_query',
            message:
              'one word finds names that consist of it or nearly so, and below the threshold, as surname_only, people who bear it as a surname, and as part_of_name organisations whose longer name has it: give the full name',
          },
        ]
      : []
  const more =
    count > hits.length
      ? [
          {
            code: 'more_matches',
            message: `${count} entries resemble the name; the ${hits.length} best are shown`,
          },
        ]
      : []
  return [...single, ...more]
}

/** The best hit with its name, list and score; what tells people apart is in the full answer. */
function previewOf(body: JsonObject): JsonObject {
  const { matches } = body
  const shown = Array.isArray(matches) ? matches.slice(0, 1).map(brief) : []
  return { ...body, matches: shown }
}

function brief(match: JsonObject): JsonObject {
  const { score = null, band = null, name = null, matched_name = null, type = null, list = null } = match
  return { score, band, name, matched_name, type, list }
}

function thousandths(number: number): number {
  return Math.round(number * 1000) / 1000
}
