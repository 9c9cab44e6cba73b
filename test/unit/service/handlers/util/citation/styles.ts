import t from 'tap'
import { bibtex } from '../../../../../../src/service/handlers/util/citation/bibtex.ts'
import { cslJson } from '../../../../../../src/service/handlers/util/citation/csl-json.ts'
import { references } from '../../../../../../src/service/handlers/util/citation/styles.ts'
import { ris } from '../../../../../../src/service/handlers/util/citation/ris.ts'
import type { Message } from '../../../../../../src/service/sources/works/crossref-message.ts'
import { readMessage } from '../../../../../../src/service/sources/works/read-message.ts'
import type { Work } from '../../../../../../src/service/sources/works/work.ts'

type Style = keyof ReturnType<typeof references>
const inStyle = (name: Style) => (work: Work) => references(work)[name]
const [apa, mla, chicago, harvard, vancouver, ieee] = [
  inStyle('apa'),
  inStyle('mla'),
  inStyle('chicago'),
  inStyle('harvard'),
  inStyle('vancouver'),
  inStyle('ieee'),
]
const STYLES = { apa, mla, chicago, harvard, vancouver, ieee }

function work(message: Partial<Message> = {}): Work {
  return readMessage({ DOI: '10.5555/x', type: 'journal-article', language: 'en', ...message })
}

/** `Yann LeCun; Yoshua Bengio` */
function people(names: string): NonNullable<Message['author']> {
  return names.split('; ').map((name) => {
    const [, given = null, family = ''] = /^(?:(.*) )?(\S+)$/.exec(name) ?? []
    return { given, family: family.replaceAll('_', ' ') }
  })
}

const year = (...parts: number[]) => ({ 'date-parts': [parts] })

const DEEP = work({
  DOI: '10.1038/nature14539',
  title: ['Deep learning'],
  author: people('Yann LeCun; Yoshua Bengio; Geoffrey Hinton'),
  'container-title': ['Nature'],
  volume: '521',
  issue: '7553',
  page: '436-444',
  issued: year(2015, 5, 28),
  ISSN: ['0028-0836'],
})

t.test('formats the reference that every style manual shows as reference managers print it', async (t) => {
  t.equal(
    apa(DEEP),
    'LeCun, Y., Bengio, Y., & Hinton, G. (2015). Deep learning. Nature, 521(7553), 436–444. https://doi.org/10.1038/nature14539',
  )
  t.equal(
    mla(DEEP),
    'LeCun, Yann, et al. “Deep Learning.” Nature, vol. 521, no. 7553, May 2015, pp. 436–44, https://doi.org/10.1038/nature14539.',
  )
  t.equal(
    chicago(DEEP),
    'LeCun, Yann, Yoshua Bengio, and Geoffrey Hinton. 2015. “Deep Learning.” Nature 521 (7553): 436–44. https://doi.org/10.1038/nature14539.',
  )
  t.equal(
    harvard(DEEP),
    'LeCun, Y., Bengio, Y. and Hinton, G. (2015) ‘Deep learning’, Nature, 521(7553), pp. 436–444. Available at: https://doi.org/10.1038/nature14539.',
  )
  t.equal(
    vancouver(DEEP),
    'LeCun Y, Bengio Y, Hinton G. Deep learning. Nature. 2015 May 28;521(7553):436–44. doi:10.1038/nature14539',
  )
  t.equal(
    ieee(DEEP),
    'Y. LeCun, Y. Bengio, and G. Hinton, “Deep learning,” Nature, vol. 521, no. 7553, pp. 436–444, May 2015, doi: 10.1038/nature14539.',
  )
})

t.test('formats APA’s published examples as APA prints them', async (t) => {
  // apastyle.apa.org, reference examples of the seventh edition; series and places are not known to agencies
  const examples: readonly (readonly [string, Partial<Message>])[] = [
    [
      'Grady, J. S., Her, M., Moreno, G., Perez, C., & Yelinek, J. (2019). Emotions in storybooks: A comparison of storybooks that represent ethnic and racial groups in the United States. Psychology of Popular Media Culture, 8(3), 207–217. https://doi.org/10.1037/ppm0000185',
      {
        DOI: '10.1037/ppm0000185',
        title: [
          'Emotions in storybooks: A comparison of storybooks that represent ethnic and racial groups in the United States.',
        ].map((title) => title.slice(0, -1)),
        author: people('Jessica S. Grady; Mai Her; Geena Moreno; Claudia Perez; Jillian Yelinek'),
        'container-title': ['Psychology of Popular Media Culture'],
        volume: '8',
        issue: '3',
        page: '207-217',
        issued: year(2019, 7),
      },
    ],
    [
      'Jerrentrup, A., Mueller, T., Glowalla, U., Herder, M., Henrichs, N., Neubauer, A., & Schaefer, J. R. (2018). Teaching medicine with the help of “Dr. House.” PLoS ONE, 13(3), Article e0193972. https://doi.org/10.1371/journal.pone.0193972',
      {
        DOI: '10.1371/journal.pone.0193972',
        title: ['Teaching medicine with the help of “Dr. House.”'],
        author: people(
          'Andreas Jerrentrup; Tobias Mueller; Ulrich Glowalla; Meike Herder; Nadine Henrichs; Andreas Neubauer; Juergen R. Schaefer',
        ),
        'container-title': ['PLoS ONE'],
        volume: '13',
        issue: '3',
        page: 'e0193972',
        issued: year(2018, 3, 13),
      },
    ],
    [
      'Kalnay, E., Kanamitsu, M., Kistler, R., Collins, W., Deaven, D., Gandin, L., Iredell, M., Saha, S., White, G., Woollen, J., Zhu, Y., Chelliah, M., Ebisuzaki, W., Higgins, W., Janowiak, J., Mo, K. C., Ropelewski, C., Wang, J., Leetmaa, A., … Joseph, D. (1996). The NCEP/NCAR 40-year reanalysis project. Bulletin of the American Meteorological Society, 77(3), 437–471. https://doi.org/10.5555/fg6rf9',
      {
        DOI: '10.5555/fg6rf9',
        title: ['The NCEP/NCAR 40-year reanalysis project'],
        author: people(
          'E. Kalnay; M. Kanamitsu; R. Kistler; W. Collins; D. Deaven; L. Gandin; M. Iredell; S. Saha; G. White; J. Woollen; Y. Zhu; M. Chelliah; W. Ebisuzaki; W. Higgins; J. Janowiak; K. C. Mo; C. Ropelewski; J. Wang; A. Leetmaa; R. Reynolds; Roy Jenne; Dennis Joseph',
        ),
        'container-title': ['Bulletin of the American Meteorological Society'],
        volume: '77',
        issue: '3',
        page: '437–471',
        issued: year(1996),
      },
    ],
    [
      'Jackson, L. M. (2019). The psychology of prejudice: From attitudes to social action (2nd ed.). American Psychological Association. https://doi.org/10.1037/0000168-000',
      {
        DOI: '10.1037/0000168-000',
        type: 'monograph',
        title: ['The psychology of prejudice'],
        subtitle: ['From attitudes to social action'],
        author: people('Lynne M. Jackson'),
        publisher: 'American Psychological Association',
        'edition-number': '2',
        issued: year(2019),
      },
    ],
    [
      'Torino, G. C., Rivera, D. P., Capodilupo, C. M., Nadal, K. L., & Sue, D. W. (Eds.). (2019). Microaggression theory: Influence and implications. John Wiley & Sons. https://doi.org/10.1002/9781119466642',
      {
        DOI: '10.1002/9781119466642',
        type: 'edited-book',
        title: ['Microaggression theory: Influence and implications'],
        editor: people(
          'Gina C. Torino; David P. Rivera; Christina M. Capodilupo; Kevin L. Nadal; Derald Wing Sue',
        ),
        publisher: 'John Wiley &amp; Sons',
        issued: year(2019),
      },
    ],
    [
      'Aron, L., Botella, M., & Lubart, T. (2019). Culinary arts: Talent and their development. In R. F. Subotnik, P. Olszewski-Kubilius, & F. C. Worrell (Eds.), The psychology of high performance: Developing human potential into domain-specific talent (pp. 345–359). American Psychological Association. https://doi.org/10.1037/0000120-016',
      {
        DOI: '10.1037/0000120-016',
        type: 'book-chapter',
        title: ['Culinary arts: Talent and their development'],
        author: people('L. Aron; M. Botella; T. Lubart'),
        editor: people('Rena F. Subotnik; Paula Olszewski-Kubilius; Frank C. Worrell'),
        'container-title': [
          'The psychology of high performance: Developing human potential into domain-specific talent',
        ],
        publisher: 'American Psychological Association',
        page: '345-359',
        issued: year(2019),
      },
    ],
    [
      'Hampton, S., Rabagliati, H., Sorace, A., & Fletcher-Watson, S. (2017). Autism and bilingualism: A qualitative interview study of parents’ perspectives and experiences. PsyArXiv. https://doi.org/10.31234/osf.io/76xfs',
      {
        DOI: '10.31234/osf.io/76xfs',
        type: 'posted-content',
        title: [
          'Autism and bilingualism: A qualitative interview study of parents’ perspectives and experiences',
        ],
        author: people('Sarah Hampton; Hugh Rabagliati; Antonella Sorace; Sue Fletcher-Watson'),
        publisher: 'Center for Open Science',
        institution: [{ name: 'PsyArXiv' }],
        issued: year(2017),
      },
    ],
  ]
  for (const [printed, message] of examples) {
    // Derald Wing Sue is D. W. in APA: his middle name is one of the given ones
    t.equal(apa(work(message)), printed)
  }
})

t.test('lists, joins and shortens one, two, eight and 21 authors as each style requires', async (t) => {
  const named = (count: number) =>
    work({
      title: ['T'],
      author: Array.from({ length: count }, (_, place) => ({ given: 'Ann', family: `A${place + 1}` })),
      issued: year(2020),
    })
  const start = (style: keyof typeof STYLES, count: number) =>
    STYLES[style](named(count)).replace(/ ?\(?2020.*| ?[“]?T(?:[.,]| \[Internet).*/s, '')
  t.strictSame(
    Object.keys(STYLES).map((style) => start(style as keyof typeof STYLES, 1)),
    ['A1, A.', 'A1, Ann.', 'A1, Ann.', 'A1, A.', 'A1 A.', 'A. A1,'],
  )
  t.strictSame(
    Object.keys(STYLES).map((style) => start(style as keyof typeof STYLES, 2)),
    [
      'A1, A., & A2, A.',
      'A1, Ann, and Ann A2.',
      'A1, Ann, and Ann A2.',
      'A1, A. and A2, A.',
      'A1 A, A2 A.',
      'A. A1 and A. A2,',
    ],
  )
  t.strictSame(
    Object.keys(STYLES).map((style) => start(style as keyof typeof STYLES, 8)),
    [
      'A1, A., A2, A., A3, A., A4, A., A5, A., A6, A., A7, A., & A8, A.',
      'A1, Ann, et al.',
      'A1, Ann, Ann A2, Ann A3, et al.',
      'A1, A. et al.',
      'A1 A, A2 A, A3 A, A4 A, A5 A, A6 A, et al.',
      'A. A1 et al.,',
    ],
  )
  t.match(start('apa', 20), /A19, A\., & A20, A\.$/)
  t.match(start('apa', 21), /A19, A\., … A21, A\.$/)
  t.match(start('chicago', 6), /A5, and Ann A6\.$/)
  t.match(start('chicago', 7), /Ann A3, et al\.$/)
})

t.test('caps thousands of authors of a laboratory so that the answer stays within its size', async (t) => {
  const large = work({
    author: Array.from({ length: 5000 }, (_, place) => ({ given: 'Ann', family: `A${place + 1}` })),
  })
  t.equal(large.authors.length, 200)
  t.equal(large.authorCount, 5000)
  t.match(apa(large), '… A5000, A.')
  t.match(bibtex(large), 'A5000, Ann and others}')
})

t.test(
  'formats what exists when author, date, pages or title are missing, as each style requires',
  async (t) => {
    const bare = work({
      title: ['On nothing?'],
      'container-title': ['Void'],
      issued: { 'date-parts': [[null]] },
    })
    t.strictSame(Object.fromEntries(Object.entries(STYLES).map(([name, style]) => [name, style(bare)])), {
      apa: 'On nothing? (n.d.). Void. https://doi.org/10.5555/x',
      mla: '“On Nothing?” Void, https://doi.org/10.5555/x.',
      chicago: '“On Nothing?” n.d. Void. https://doi.org/10.5555/x.',
      harvard: '‘On nothing?’ (no date) Void. Available at: https://doi.org/10.5555/x.',
      vancouver: 'On nothing? Void. [date unknown]. doi:10.5555/x',
      ieee: '“On nothing?,” Void, n.d., doi: 10.5555/x.',
    })
    for (const style of Object.values(STYLES)) {
      const text = style(work({ type: null }))
      t.match(text, 'Untitled')
      t.notMatch(text, /undefined|null|NaN|\(\)|, ,|\.\.|^[,. ]/)
    }
    t.match(bibtex(work({ type: null })), /^@misc\{nduntitled,\n/)
  },
)

t.test('keeps the form of organisations, particles, suffixes, hyphens and single names', async (t) => {
  const mixed = work({
    title: ['T'],
    author: [
      { name: 'World Health Organization' },
      { given: 'Ludwig', family: 'van Beethoven' },
      { given: 'Martin Luther', family: 'King', suffix: 'Jr.' },
      { given: 'Jean-Paul', family: 'Sartre' },
      { given: 'JP', family: 'Morgan' },
      { given: '伟', family: '王' },
    ],
    issued: year(2020),
  })
  t.equal(
    apa(mixed),
    'World Health Organization, van Beethoven, L., King, M. L., Jr., Sartre, J.-P., Morgan, J. P., & 王伟. (2020). T. https://doi.org/10.5555/x',
  )
  t.match(
    vancouver(mixed),
    /^World Health Organization, van Beethoven L, King ML Jr, Sartre JP, Morgan JP, 王伟\. T/,
  )
  t.match(ieee(mixed), /^World Health Organization, L\. van Beethoven, M\. L\. King Jr\., J\.-P\. Sartre, /)
  t.match(
    bibtex(mixed),
    /author = \{\{World Health Organization\} and van Beethoven, Ludwig and King, Jr\., Martin Luther and /,
  )
  t.match(
    ris(mixed),
    'AU  - World Health Organization\r\nAU  - van Beethoven, Ludwig\r\nAU  - King, Martin Luther, Jr.\r\n',
  )
  t.match(cslJson(mixed)['author'], [
    { literal: 'World Health Organization' },
    { family: 'van Beethoven', given: 'Ludwig' },
    { family: 'King', given: 'Martin Luther', suffix: 'Jr.' },
  ])
})

t.test('formats a thesis, a report of its own office and a chapter without editors', async (t) => {
  const thesis = work({
    type: 'dissertation',
    title: ['On lamps'],
    author: people('Ada Quill'),
    publisher: 'University of Wexmire',
    issued: year(2011),
  })
  t.match(apa(thesis), 'On lamps [Dissertation, University of Wexmire]. https://')
  t.match(chicago(thesis), '“On Lamps.” Dissertation, University of Wexmire. https://')
  const report = work({
    type: 'report',
    title: ['Lamps'],
    author: [{ name: 'Lamp Office' }],
    publisher: 'Lamp Office',
    issued: year(2011),
  })
  t.equal(apa(report), 'Lamp Office. (2011). Lamps. https://doi.org/10.5555/x', 'named once')
  const talk = work({
    type: 'proceedings-article',
    title: ['Lamps'],
    author: people('Ada Quill'),
    'container-title': ['Proceedings of the Lamp Conference'],
    publisher: 'Lamp Society',
    page: '7',
    issued: year(2011, 9),
  })
  t.strictSame(
    Object.values(STYLES).map((style) => style(talk)),
    [
      'Quill, A. (2011). Lamps. Proceedings of the Lamp Conference, 7. https://doi.org/10.5555/x',
      'Quill, Ada. “Lamps.” Proceedings of the Lamp Conference, 2011, p. 7, https://doi.org/10.5555/x.',
      'Quill, Ada. 2011. “Lamps.” Proceedings of the Lamp Conference, September, 7. https://doi.org/10.5555/x.',
      'Quill, A. (2011) ‘Lamps’, Proceedings of the Lamp Conference. Lamp Society, p. 7. Available at: https://doi.org/10.5555/x.',
      'Quill A. Lamps. In: Proceedings of the Lamp Conference [Internet]. Lamp Society; 2011. p. 7. Available from: https://doi.org/10.5555/x doi:10.5555/x',
      'A. Quill, “Lamps,” in Proceedings of the Lamp Conference, Lamp Society, Sep. 2011, p. 7. doi: 10.5555/x.',
    ],
  )
})

t.test('capitalises English titles only, and keeps names', async (t) => {
  const title = (text: string, language: string | null) =>
    /“(.*)\.”/.exec(mla(work({ title: [text], language, 'container-title': ['J'] })))?.[1]
  t.equal(
    title('the effects of mRNA on a cell-by-cell basis', 'en'),
    'The Effects of mRNA on a Cell-by-Cell Basis',
  )
  t.equal(title('a study of iPhones: the end of an era', 'en-GB'), 'A Study of iPhones: The End of an Era')
  t.equal(title('über die lampen', 'de'), 'über die lampen')
  t.equal(title('la vie des lampes', null), 'la vie des lampes', 'of a language that nobody has told')
  t.equal(title('the life of lamps', null), 'The Life of Lamps')
})

t.test('shortens pages by the rule of each style', async (t) => {
  const spans = (page: string) => {
    const paged = work({ title: ['T'], 'container-title': ['J'], volume: '1', page, issued: year(2020) })
    return [apa, mla, chicago, vancouver].map(
      (style) => /(?:1, |pp?\. |: |:)(\d+–\d+)/.exec(style(paged))?.[1],
    )
  }
  t.strictSame(spans('436-444'), ['436–444', '436–44', '436–44', '436–44'])
  t.strictSame(spans('101-108'), ['101–108', '101–08', '101–8', '101–8'])
  t.strictSame(spans('71-72'), ['71–72', '71–72', '71–72', '71–2'])
  t.strictSame(spans('100-104'), ['100–104', '100–04', '100–104', '100–4'])
  t.strictSame(spans('995-1003'), ['995–1003', '995–1003', '995–1003', '995–1003'])
  t.strictSame(spans('436-44'), ['436–444', '436–44', '436–44', '436–44'], 'shortened by the agency')
})

t.test('escapes titles in BibTeX', async (t) => {
  const nasty = bibtex(
    work({
      DOI: '10.5555/a_b{c}%d',
      title: ['100% of $_{x}^2 & #1 ~ \\input{/etc/passwd} in DNA'],
      author: [{ given: 'A}', family: 'O’Müßig' }],
      'container-title': ['A & B'],
      issued: year(2020, 12),
    }),
  )
  t.equal(
    nasty,
    `@article{omussig2020100,
  author = {O’Müßig, A\\}},
  title = {100\\% of \\$\\_\\{x\\}\\textasciicircum{}2 \\& \\#1 \\textasciitilde{} \\textbackslash{}input\\{/etc/passwd\\} in {DNA}},
  journal = {A \\& B},
  year = {2020},
  month = dec,
  doi = {10.5555/a_b%7Bc%7D%d},
  url = {https://doi.org/10.5555/a_b%7Bc%7D%25d}
}
`,
  )
})

t.test('keeps capitals of words in BibTeX, and leaves those of headlines to the style', async (t) => {
  const title = (text: string) => /title = \{(.*)\},/.exec(bibtex(work({ title: [text] })))?.[1]
  t.equal(title('Lamps of Wexmire and their DNA'), 'Lamps of {Wexmire} and their {DNA}')
  t.equal(title('The Lamps of the North and McKay'), 'The Lamps of the North and {McKay}')
})

t.test('writes one line for each tag of RIS, whatever a title contains', async (t) => {
  const text = ris(
    work({
      title: ['One\r\nER  - \r\nTY  - JOUR'],
      author: people('Ada Quill'),
      issued: year(2020, 2, 3),
      page: 'S12-S19',
    }),
  )
  t.equal(
    text,
    [
      'TY  - JOUR',
      'AU  - Quill, Ada',
      'TI  - One ER - TY - JOUR',
      'PY  - 2020',
      'DA  - 2020/02/03',
      'SP  - S12',
      'EP  - S19',
      'LA  - en',
      'DO  - 10.5555/x',
      'UR  - https://doi.org/10.5555/x',
      'ER  - ',
      '',
    ].join('\r\n'),
  )
})

t.test('writes CSL-JSON with what reference managers read, free of empty fields', async (t) => {
  t.strictSame(cslJson(DEEP), {
    id: '10.1038/nature14539',
    type: 'article-journal',
    title: 'Deep learning',
    author: [
      { family: 'LeCun', given: 'Yann' },
      { family: 'Bengio', given: 'Yoshua' },
      { family: 'Hinton', given: 'Geoffrey' },
    ],
    'container-title': 'Nature',
    issued: { 'date-parts': [[2015, 5, 28]] },
    volume: '521',
    issue: '7553',
    page: '436-444',
    language: 'en',
    ISSN: '0028-0836',
    DOI: '10.1038/nature14539',
    URL: 'https://doi.org/10.1038/nature14539',
  })
})
