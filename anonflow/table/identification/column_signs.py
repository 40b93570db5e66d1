"""Signs of identifying columns: names in several languages, patterns of values, check digits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from anonflow.table.identification.weight_signs import weight_name

_PERSON_THINGS = {
    "account",
    "acct",
    "konto",
    "cuenta",
    "conta",
    "compte",
    "conto",
    "customer",
    "cust",
    "kunde",
    "kunden",
    "client",
    "cliente",
    "klient",
    "patient",
    "patienten",
    "paciente",
    "paziente",
    "member",
    "mitglied",
    "miembro",
    "membre",
    "employee",
    "emp",
    "personal",
    "staff",
    "student",
    "pupil",
    "schüler",
    "schueler",
    "alumno",
    "élève",
    "eleve",
    "participant",
    "teilnehmer",
    "serial",
    "matrikel",
    "policy",
    "contract",
    "order",
    "invoice",
    "case",
    "fall",
    "akten",
    "vertrag",
    "record",
    "card",
    "karte",
    "tarjeta",
    "carte",
    "user",
    "login",
    "subject",
    "hospital",
    "medical",
    "insurance",
    "versicherung",
    "proband",
    "respondent",
    "person",
    "citizen",
    "taxpayer",
    "vehicle",
    "plate",
    "registration",
}
_NUMBERS = {
    "no",
    "nr",
    "num",
    "number",
    "nummer",
    "numero",
    "número",
    "numéro",
    "id",
    "key",
    "code",
    "kennung",
    "zeichen",
    "ref",
}
_PEOPLE = r"""pupil|student|schüler|schueler|schülerin|alumno|alumna|élève|eleve|child|kindes|teacher|lehrer|parent|guardian|mother
father|mutter|vater|spouse|partner|patient|patienten|paciente|paziente|customer|kunden?|client|cliente|klient|member|mitglied|employee
mitarbeiter|staff|worker|user|person|people|participant|teilnehmer|respondent|proband|subject|citizen|resident|donor|voter|tenant|owner
doctor|physician|arzt|nurse|contact""".replace("\n", "|")
_NAME_OF_PERSON = re.compile(
    rf"({_PEOPLE})( ?s|n|en)?( ?(first|last|full|sur|given|family|middle|maiden))? ?names?|names? of (the )?({_PEOPLE})s?"
)
"""Student name, mother's last name, name of child, Schülername."""

_COMPOUND = re.compile(rf"({'|'.join(sorted(_PERSON_THINGS))})(s|n|en)?({'|'.join(sorted(_NUMBERS))})")
"""Both in one word: Fallnummer, Mitgliedsnummer, casenumber."""

_HOUSEHOLDS = (
    "household|hh|serial|haushalts?|hogar|foyer|ménage|menage|hushåll|husholdning|huishouden|"
    "famiglia|familia|famille|familie|familien|familj|family|gospodarstwo"
)
_HOUSEHOLD = re.compile(rf"({_HOUSEHOLDS})({'|'.join(sorted(_NUMBERS))})?")

_NUMBER_OF_PERSON = "a number or code that stands for one person"

_PHRASES = (
    "socialsecurity",
    "sécuritésociale",
    "securitesociale",
    "seguridadsocial",
    "medicalrecord",
    "healthcard",
)
"""Several words that are such a number's name together, whatever stands around them."""

_IDENTIFIERS: dict[str, set[str]] = {
    _NUMBER_OF_PERSON: {"id", "ids", "uuid", "guid", "ssn", "nin", "nino", "nhs", "mrn", "ein", "tin", "nif", "dni", "nie", "cpf", "cnpj", "nir", "insee", "svnr", "ahv", "bsn", "pesel", "personnummer", "sozialversicherungsnummer", "steuernummer", "steuerid", "passport", "pasaporte", "passeport", "reisepass", "ausweis", "passnummer", "iban", "bic", "userid", "username", "nickname", "login", "customerid", "custid", "custno", "customerno", "patientid", "patientno", "kundennummer", "accountno", "accountnumber", "matrikelnummer", "rowid", "recordid", "caseid", "serial", "imei", "mac", "vin", "handle", "codicefiscale", "steueridentifikationsnummer", "versichertennummer", "patientennummer", "medicalrecord", "aadhaar", "curp", "cedula", "cédula", "inn", "snils", "снилс", "инн", "паспорт", "身份证", "身份证号", "oib", "cnp", "tckn", "henkilötunnus", "personnr", "fodselsnummer", "fødselsnummer", "cpr"}
    | {"user", "account", "pupil", "schüler", "schueler", "alumno", "alumna", "élève", "eleve", "patient", "paciente", "customer", "kunde", "client", "cliente", "member", "konto", "cuenta"}
    | {"учень", "учня", "учениця", "учениці", "ученик", "ученика", "студент", "студента", "пацієнт", "пацієнта", "пациент", "пациента", "клієнт", "клієнта", "клиент", "клиента"},
    "a name of a person": {"піб", "прізвище", "імя", "firstname", "lastname", "surname", "fullname", "forename", "givenname", "familyname", "vorname", "nachname", "familienname", "nombre", "apellido", "apellidos", "prenom", "prénom", "nom", "cognome", "nome", "sobrenome", "voornaam", "achternaam", "naam", "förnamn", "efternamn", "namn", "fornavn", "efternavn", "etternavn", "etunimi", "sukunimi", "nimi", "imię", "imie", "nazwisko", "jméno", "jmeno", "příjmení", "prijmeni", "vezetéknév", "keresztnév", "név", "soyad", "soyadı", "имя", "фамилия", "отчество", "фио", "όνομα", "επώνυμο", "ονοματεπώνυμο", "姓名", "氏名", "名前", "이름", "성명", "الاسم"},
    "a way to reach a person": {"адреса", "email", "emails", "mail", "correo", "courriel", "phone", "phones", "telephone", "telefon", "telefono", "teléfono", "téléphone", "telefoon", "telefone", "telefonszám", "puhelin", "telefonnummer", "handynummer", "mobilnummer", "mobiltelefon", "телефон", "τηλέφωνο", "电话", "手机", "電話", "전화", "tel", "mobile", "handy", "celular", "movil", "móvil", "cell", "cellphone", "fax", "contact", "kontakt", "contacto", "address", "addresses", "adresse", "anschrift", "adres", "adress", "adresa", "osoite", "адрес", "διεύθυνση", "地址", "住所", "주소", "direccion", "dirección", "indirizzo", "endereço", "street", "strasse", "straße", "calle", "rue", "via", "url", "website", "homepage", "ip", "ipaddress"},
    "the plate of a vehicle": {"licenceplate", "licenseplate", "numberplate", "kennzeichen", "matricula", "matrícula", "immatriculation", "targa", "plate"},
    "free text": {"примітка", "opmerking", "opmerkingen", "uwagi", "kommentar", "kommentare", "примечание", "note", "notes", "notiz", "notizen", "comment", "comments", "comentario", "comentarios", "commentaire", "commento", "remark", "remarks", "bemerkung", "bemerkungen", "observacion", "observaciones", "freetext", "anmerkung", "diary"},
    "a place on the map": {"gps", "lat", "lon", "lng", "latitude", "longitude", "latitud", "longitud", "coordinates", "coordenadas", "geo"},
}  # fmt: skip

_SENSITIVE = re.compile(
    r"salar|income|wage|gehalt|einkommen|lohn|ingreso|sueldo|revenu|reddito|diagnos|disease|illness|krankheit|enfermedad|"
    r"maladie|malattia|діагноз|диагноз|захворюв|заболев|хвороб|медичн|медицин|зарплат|дохід|доход|condition|religio|politic|orientation|verdict|score|(^|[^a-z])class$|hiv|drug|(^|[^a-z])(target|outcome|label|response)$|^y$",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"zip|post(al)?[-_ ]?(code|leitzahl)|plz|postcode|codigo[-_ ]?postal|code[-_ ]?postal|(поштов|почтов)\w+[-_ ]?[иі]ндекс|(^|[^a-z])(cap|cep)$",
    re.IGNORECASE,
)


def name_words(name: str) -> list[str]:
    """Return the words of a column's name in lower case: parted at signs, digits and capitals inside."""
    parted = re.sub(r"(?<=[a-zà-ÿ])(?=[A-ZÀ-Þ])", " ", name)
    return [word.lower() for word in re.findall(r"[^\W\d_]+", parted)]


def are_school_classes(name: str, values: Iterable[object]) -> bool:
    """Return whether a column called class has those of a school, such as 5a or 10 B: others know them."""
    if name_words(name)[-1:] != ["class"]:
        return False
    return all(re.fullmatch(r"\s*\d{1,2}\s?[-./]?\s?[A-Za-z]\s*", str(value)) for value in values)


def is_count_of_things(name: str) -> bool:
    """Return whether a name says how many there are, in words that name a person in another language: nombre d'enfants."""
    return name_words(name)[:1] == ["nombre"] and name_words(name)[1:2] in (["d"], ["de"], ["des"], ["total"])


def group_name(name: str) -> str | None:
    """Return the role of a column with this name whose values repeat: household, unit, or None."""
    if _HOUSEHOLD.fullmatch("".join(name_words(name))):
        return "household"
    role, reason = name_says(name) or ("", "")
    return "unit" if role == "identifier" and "one person" in reason else None


def name_says(name: str) -> tuple[str, str] | None:
    """Return the role that a name suggests, and why.

    Returns
    -------
    (role, reason) or None
        Roles: identifier, sensitive, weight, code.
    """
    words = name_words(name)
    joined = "".join(words)
    if weight_name(name) == "weight":
        return "weight", "its name is that of a sampling weight"
    number_of = len(words) > 1 and words[-1] in _NUMBERS and set(words[:-1]) & _PERSON_THINGS
    if number_of or any(_COMPOUND.fullmatch(word) for word in words):
        return "identifier", "its name is that of a number that stands for one person"
    if _NAME_OF_PERSON.fullmatch(" ".join(words)) or (
        words[-1:] == ["name"]
        and (len(words) == 1 or words[-2] in ("first", "last", "full", "sur", "given", "family", "user"))
    ):
        return "identifier", "its name is that of a name of a person"
    if _SENSITIVE.search(name):
        return "sensitive", "its name is that of something people want to keep to themselves"
    for meaning, terms in _IDENTIFIERS.items():
        if joined in terms or set(words) & terms:
            return "identifier", f"its name is that of {meaning}"
    if any(phrase in joined for phrase in _PHRASES):
        return "identifier", f"its name is that of {_NUMBER_OF_PERSON}"
    if _CODE.search(name):
        return "code", "its name is that of a postal code"
    return None


# ------------------------------------------------------------------------------------ check digits


def _without_separators(text: str) -> str:
    return re.sub(r"[ .\-/]", "", text)


def is_card(text: str) -> bool:
    """Return a card number: 13 to 19 digits, by Luhn's check digit."""
    digits = _without_separators(text)
    if not digits.isascii() or not digits.isdigit() or not 13 <= len(digits) <= 19:
        return False
    doubled = [int(d) * (1 + at % 2) for at, d in enumerate(reversed(digits))]
    # of a doubled digit counts the sum of its digits: 9 less, if it has two
    return sum(d - 9 * (d > 9) for d in doubled) % 10 == 0


def is_iban(text: str) -> bool:
    """Return an IBAN: two letters, two check digits, by ISO 7064 mod 97."""
    plain = _without_separators(text).upper()
    if not re.fullmatch(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}", plain):
        return False
    # letters count from 10 for A, as base 36 has them
    return int("".join(str(int(c, 36)) for c in plain[4:] + plain[:4])) % 97 == 1


def is_national_id(text: str) -> bool:
    """Return a national number with check digits:

    Spain (DNI, NIE), Brazil (CPF), England (NHS), France (NIR), Italy's code.
    """
    plain = _without_separators(text).upper()
    if re.fullmatch(r"[XYZ0-9][0-9]{7}[A-Z]", plain):
        # Spain: the remainder by 23 names the letter; a foreigner's number begins with a letter for 0, 1 or 2
        number = plain[:-1].replace("X", "0").replace("Y", "1").replace("Z", "2")
        return "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == plain[-1]
    if re.fullmatch(r"[A-Z]{6}[0-9LMNP-V]{2}[ABCDEHLMPRST][0-9LMNP-V]{2}[A-Z][0-9LMNP-V]{3}[A-Z]", plain):
        return True
    if not plain.isascii() or not plain.isdigit():
        return False
    numbers = [int(d) for d in plain]
    # Brazil, without numbers of one repeated digit, which no one has though they pass
    if len(plain) == 11 and len(set(plain)) > 1:
        return all(
            sum(n * (length + 1 - at) for at, n in enumerate(numbers[:length])) * 10 % 11 % 10
            == numbers[length]
            for length in (9, 10)
        )
    # England; a remainder of 10 is no digit, and no number has it
    if len(plain) == 10:
        return (11 - sum(n * (10 - at) for at, n in enumerate(numbers[:9])) % 11) % 11 == numbers[9]
    # France: 1 or 2 in front is the sex
    return len(plain) == 15 and plain[0] in "12" and 97 - int(plain[:13]) % 97 == int(plain[13:])


_EMAIL = re.compile(r"[^@\s]{1,64}@[^@\s]{1,250}\.[A-Za-z]{2,24}")
_URL = re.compile(r"(https?://|www\.)\S+", re.IGNORECASE)
_PHONE = re.compile(
    r"(\+|00)[0-9][0-9 ()/.\-]{6,20}|\(?0?[0-9]{2,5}\)?[ /\-.][0-9]{3,4}([ \-.][0-9]{2,5}){1,3}"
)
_UUID = re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_SSN = re.compile(r"[0-9]{3}-[0-9]{2}-[0-9]{4}")
_IP = re.compile(r"([0-9]{1,3}\.){3}[0-9]{1,3}")
_PLACE = re.compile(r"\(?-?[0-9]{1,2}\.[0-9]{3,}[,; ]+-?[0-9]{1,3}\.[0-9]{3,}\)?")

PATTERNS: dict[str, Callable[[str], object]] = {
    "e-mail addresses": _EMAIL.fullmatch,
    "web addresses": _URL.fullmatch,
    "IBANs, by their check digits": is_iban,
    "card numbers, by their check digit": is_card,
    "national numbers, by their check digits": is_national_id,
    "social security numbers": _SSN.fullmatch,
    "universal identifiers": _UUID.fullmatch,
    "addresses of computers": _IP.fullmatch,
    "coordinates": _PLACE.fullmatch,
    "phone numbers": _PHONE.fullmatch,
}
"""Kinds of values, with the function that recognizes each."""

_MOST = 0.9
"""The share of values that must be of the kind."""

_LONGEST = 300


def values_say(texts: Sequence[str]) -> str | None:
    """Return the kind of a column's distinct values, None if they are not of a kind that identifies a person.

    Parameters
    ----------
    texts : sequence of str
        Patterns and check digits are tested on any number of them, free text on 5 or more: a few answers of many words are
        categories.
    """
    short = [text.strip()[:_LONGEST] for text in texts]
    if not short:
        return None
    for kind, looks in PATTERNS.items():
        if sum(looks(text) is not None and bool(looks(text)) for text in short) >= _MOST * len(short):
            return kind
    words = sorted(len(text.split()) for text in short)
    return "free text" if len(words) >= 5 and words[len(words) // 2] >= 5 else None
