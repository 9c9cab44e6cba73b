import t from 'tap'
import { isJsonObject, type JsonObject } from '../../../../../src/engine/handler.ts'
import { repurpose } from '../../../../../src/service/handlers/util/repurpose.ts'
import { cut } from '../../../../../src/service/handlers/util/repurpose/cutting.ts'
import {
  AS_WRITTEN,
  ON_X,
  shorten,
  weightOf,
} from '../../../../../src/service/handlers/util/repurpose/posts.ts'
import { languageOf } from '../../../../../src/service/handlers/util/repurpose/language.ts'
import { sentencesOf } from '../../../../../src/service/handlers/util/repurpose/sentences.ts'
import { growthOf, MOST_GROWTH } from '../../../../support/service/cpu-growth.ts'
import { fixedContext, publishedExample } from '../../../../support/handler-context.ts'
import { fc } from '../../../../support/fast-check.ts'
import { checkedAnswer } from '../../../../support/service/answer-shape.ts'

const ARTICLE = [
  'Why do some games sell for twenty years? The first answer is patience. Their makers kept fixing what players disliked, week after week, long after the reviews were written.',
  'The second answer is the players themselves. They built levels, told stories and brought their friends. A game with a level editor is never finished, because its players finish it again every evening.',
  'But patience costs money. A studio of forty people needs about 4 million dollars a year before anybody is paid a bonus. Most studios cannot wait that long, and so they move on to the next game.',
  'Small teams have an advantage here. Two people who live cheaply can keep a game alive for a decade. Dr. Weber, who has studied long-lived games since Jan. 2010, calls this the gardener model.',
  'Gardeners do not plan for a harvest. They water what grows. Level editors, mods and tournaments grow by themselves when the tools are good and the makers stay out of the way.',
  'What can you learn from that? Build the tools first. Listen to the ten players who write long letters. And never switch off a server that somebody still loves.',
].join('\n\n')

async function ask(text: string, n = 3, target = 20) {
  return checkedAnswer(
    'util/repurpose',
    await repurpose.run({ text, n, target_seconds: target }, fixedContext()),
  )
}

function segments(body: JsonObject) {
  const list = body['segments']
  if (!Array.isArray(list)) throw new Error('expected an array')
  return list.map((segment: JsonObject) => {
    const { text, start, end, estimated_seconds: seconds, word_count: words, hook } = segment
    if (typeof text !== 'string' || typeof hook !== 'string') throw new Error('no text')
    if (typeof start !== 'number' || typeof end !== 'number') throw new Error('no place')
    return { text, hook, start, end, seconds: Number(seconds), words: Number(words) }
  })
}

t.test(
  'cuts an article into three clips of about twenty seconds in its own words, as published',
  async (t) => {
    const { body, warnings } = await ask(ARTICLE)
    const clips = segments(body)
    t.equal(clips.length, 3)
    t.strictSame(warnings, [])
    t.equal(body['language'], 'en')
    for (const [index, { text, start, end, seconds, words, hook }] of clips.entries()) {
      t.equal(ARTICLE.slice(start, end), text)
      t.ok(seconds >= 16 && seconds <= 23, `${seconds} seconds`)
      t.ok(Math.abs(words / 2.5 - seconds) <= 1)
      t.ok(text.includes(hook.replace(/…$/, '')), 'the hook stands in the clip')
      t.ok(hook.split(/\s/).length <= 12)
      t.ok(start >= (clips[index - 1]?.end ?? 0), 'clips do not overlap')
    }
    const { summary, posts } = body
    t.ok(typeof summary === 'string' && summary.split(/(?<=[.?!]) /).every((part) => ARTICLE.includes(part)))
    if (!isJsonObject(posts)) throw new Error('no posts')
    t.ok(weightOf(JSON.stringify(posts['x']), ON_X) <= 282)
    t.ok(JSON.stringify(posts['linkedin']).length <= 720)
    t.match(posts['thread'], [/^1\/3 /, /^2\/3 /, /^3\/3 /])
    t.strictSame(body, publishedExample('util/repurpose'))
  },
)

t.test(
  'names what a text says often, with its plurals, and titles a clip with a sentence of it',
  async (t) => {
    const { body } = await ask(
      'The central bank raised interest rates by a quarter point. Interest rates are now at their highest level in 16 years. The central bank said that it would watch inflation. Inflation fell to five percent in March. The central banks of both countries had raised theirs first.',
      2,
      15,
    )
    t.match(body, {
      keywords: [{ term: 'central bank', score: 1 }, { term: 'interest rates' }, { term: 'inflation' }],
    })
    const [clip] = body['segments'] as [JsonObject]
    t.match(clip, { title: 'The central bank said that it would watch inflation' })
    t.match(body['posts'], { x: / #CentralBank #InterestRates #Inflation$/ })
  },
)

t.test('continues a sentence after Dr. and Jan.', async (t) => {
  const found = sentencesOf(
    'I met Dr. Weber on Jan. 5 in St. Louis. He smiled. It cost 3.50 dollars, i.e. little.',
    'en',
  )
  t.strictSame(
    found.map(({ text }) => text),
    ['I met Dr. Weber on Jan. 5 in St. Louis.', 'He smiled.', 'It cost 3.50 dollars, i.e. little.'],
  )
})

t.test('gives fewer clips for a short text, and says so', async (t) => {
  const { body, warnings } = await ask(
    'Why do some games sell for twenty years? The first answer is patience.',
    3,
    45,
  )
  t.equal(segments(body).length, 1)
  t.match(warnings, [
    { code: 'fewer_segments', message: 'The text has room for 1 of 3 clips of this length' },
  ])
})

t.test('cuts a transcript without full stops between words', async (t) => {
  const words = Array.from(
    { length: 600 },
    (_, index) => ['so', 'then', 'players', 'build', 'levels'][index % 5],
  )
  const { body } = await ask(words.join(' '), 3, 30)
  const clips = segments(body)
  t.equal(clips.length, 3)
  for (const { seconds } of clips) t.ok(seconds >= 24 && seconds <= 35)
})

t.test('tells languages apart, and times those without spaces by characters', async (t) => {
  for (const [language, text] of [
    ['en', 'The players built levels and told stories to their friends.'],
    ['de', 'Die Spieler haben nicht nur Level gebaut, sondern auch Geschichten erzählt.'],
    ['fr', 'Les joueurs ont construit des niveaux et ils ont raconté des histoires.'],
    ['es', 'Los jugadores construyeron niveles y contaron historias a sus amigos.'],
    ['it', 'I giocatori hanno costruito livelli e raccontato storie agli amici della scuola.'],
    ['pt', 'Os jogadores não só construíram níveis como também contaram histórias aos seus amigos.'],
    ['ja', 'プレイヤーはレベルを作り、友だちに物語を話しました。'],
    ['zh', '玩家们建造关卡，给朋友们讲故事。'],
    ['ko', '플레이어들은 레벨을 만들고 친구들에게 이야기를 들려주었습니다.'],
    ['ru', 'Игроки строили уровни и рассказывали истории друзьям.'],
    ['und', 'Qwrt zxcv bnmp lkjh gfds.'],
  ] as const) {
    t.equal(languageOf(text), language)
  }
  const { body } = await ask('玩家们建造关卡，给朋友们讲故事。'.repeat(20), 2, 10)
  t.ok(segments(body).length === 2)
  for (const { seconds } of segments(body)) t.ok(seconds >= 8 && seconds <= 12)
})

t.test('takes time in proportion to the text', async (t) => {
  const shapes = [
    'a',
    'a ',
    'A. ',
    'a. ',
    'Ab cd. ',
    'Word. ',
    '1. ',
    '! ',
    '.',
    '\n',
    "a'",
    'a-',
    '玩',
    'か',
    'ก',
    'ab ',
    'Dr. ',
    '\u0301',
    '😀',
    '"',
    'One two three four five six seven. ',
    'https://',
    'a.',
  ]
  for (const shape of shapes) {
    for (const [n, target] of [
      [10, 5],
      [10, 600],
    ] as const) {
      const growth = growthOf((length) =>
        cut({ text: `Word ${shape.repeat(length)}`.slice(0, length), n, target_seconds: target }),
      )
      t.ok(growth < MOST_GROWTH, `${JSON.stringify(shape)} ${target}: ${growth.toFixed(1)} times the work`)
    }
  }
  const many = Array.from({ length: 2000 }, (_, index) => `Word${index} here.`).join(' ')
  t.match((await ask(many)).warnings, [{ code: 'text_cut' }])
})

t.test('cuts any text into clips that are slices in order, and posts within their limits', async () => {
  const piece = fc.constantFrom(
    '. ',
    '? ',
    '\n\n',
    'Dr. ',
    ' you ',
    '玩家',
    '，',
    '。',
    '😀',
    'word ',
    'Another sentence here. ',
    'https://a.example/b ',
    '\u0000',
  )
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.oneof(piece, fc.string({ unit: 'binary' })), { minLength: 5, maxLength: 60 }),
      fc.integer({ min: 1, max: 10 }),
      fc.integer({ min: 5, max: 600 }),
      async (parts, n, target) => {
        const text = `Word ${parts.join('')}`.slice(0, 20_000)
        const { body } = await ask(text, n, target)
        const clips = segments(body)
        const { posts } = body
        return (
          clips.length <= n &&
          clips.every(
            ({ start, end, text: said }, index) =>
              text.slice(start, end) === said && start >= (clips[index - 1]?.end ?? 0),
          ) &&
          isJsonObject(posts) &&
          typeof posts['x'] === 'string' &&
          weightOf(posts['x'], ON_X) <= 280 &&
          Array.isArray(posts['thread']) &&
          posts['thread'].every((post) => typeof post === 'string' && weightOf(post, ON_X) <= 280) &&
          typeof posts['linkedin'] === 'string' &&
          weightOf(posts['linkedin'], AS_WRITTEN) <= 700
        )
      },
    ),
    { numRuns: 200 },
  )
})

t.test('refuses a text without words', async (t) => {
  for (const text of ['!'.repeat(300), '😀 '.repeat(100), '… — …'])
    await t.rejects(ask(text), { message: 'text: text must contain words' })
})

t.test('counts each address in a post for X as 23 characters', (t) => {
  t.equal(weightOf('Go to https://a.io now', ON_X), 6 + 23 + 4)
  t.equal(weightOf(`See https://example.com/${'x'.repeat(400)}`, ON_X), 4 + 23)
  t.equal(weightOf('See a.io', ON_X), 4 + 23)
  t.equal(weightOf(`See example.com/${'x'.repeat(400)}`, ON_X), 4 + 412)
  const links = shorten('https://a.io '.repeat(20), 280, ON_X)
  t.equal(links, `${'https://a.io '.repeat(11).trimEnd()}…`)
  t.equal(weightOf('See https://a.io', AS_WRITTEN), 16)
  t.end()
})

t.test('shows clips only in the free sample', async (t) => {
  const preview = repurpose.preview((await ask(ARTICLE, 1)).body)
  t.equal(segments(preview).length, 1)
  t.notOk('posts' in preview || 'summary' in preview)
})

t.test('takes no hook that refers to a sentence before it', async (t) => {
  const text =
    'The museum opened a new wing in May. It was a success. The wing shows clocks of five centuries.'
  for (const { hook } of segments((await ask(text, 1, 10)).body)) t.notMatch(hook, /^It /)
})
