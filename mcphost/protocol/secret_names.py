"""Recognizes field names and texts that stand for a secret or a payment credential.

Forms must not ask for either (spec: client/elicitation, "Security Considerations"), nor may they be
mirrored into headers, which proxies see and log (spec: server/tools, "x-mcp-header"). The check
looks at words only: whole words and phrases, so that `max_tokens`, `pinned` and `shipping` are no
secrets. It covers the most spoken languages; for scripts without spaces and for inflected words it
looks for fragments.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

_LONGEST_CACHED: Final = 200

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_ACCENT: Final = re.compile("[\u0300-\u036f]")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FILLERS: Final = _words("""
    of the a an your my
    de del la las el los tu su mi
    do da dos das seu sua meu minha
    du des le les l d votre vos ton mon
    der die das des dein deine ihr ihre mein meine
""")
"""Words that are removed before phrases are compared: "número de la tarjeta" is "numero tarjeta"."""

_WORDS: Final = _words("""
    password passwords passwd passphrase passcode pwd
    secret secrets credential credentials authorization bearer jwt
    apikey apikeys privatekey secretkey accesskey
    accesstoken authtoken refreshtoken apitoken sessiontoken
    pin otp totp ssn cvv cvc csc iban ibans mnemonic connstr
    contrasena contrasenas contrasenia
    mdp motdepasse cryptogramme
    senha senhas segredo
    passwort passworter kennwort kennworter geheimzahl geheimnummer
    kreditkartennummer kartennummer kontonummer bankleitzahl
    sandi rahasia
""")
"""Words that indicate a secret by themselves, without accents: English, Spanish, French,
Portuguese, German and Indonesian."""

_PHRASES: Final = _words("""
    social_security_number maiden_name security_answer
    card_number card_num card_no credit_card debit_card card_security card_verification
    card_expiry card_expiration
    account_number account_num account_no acct_number acct_no bank_account
    routing_number routing_num routing_no transit_number aba_number sort_code
    seed_phrase seed_words recovery_phrase recovery_words secret_phrase backup_phrase
    recovery_code backup_code recovery_key
    connection_string connection_uri connection_url database_url db_url jdbc_url
    security_code verification_code one_time_code authentication_code authenticator_code
    login_code sms_code mfa_code

    clave_secreta clave_acceso clave_privada clave_api clave_bancaria clave_usuario clave_personal
    numero_tarjeta numero_cuenta cuenta_bancaria tarjeta_credito tarjeta_debito
    codigo_seguridad codigo_verificacion codigo_secreto frase_semilla frase_recuperacion
    cadena_conexion llave_privada token_acceso

    mot_passe code_secret code_confidentiel code_securite code_verification
    numero_carte numero_compte compte_bancaire carte_credit carte_bancaire
    phrase_secrete phrase_recuperation chaine_connexion cle_privee cle_secrete cle_api cle_acces
    jeton_acces identifiants_connexion

    palavra_passe numero_cartao numero_conta conta_bancaria cartao_credito cartao_debito
    codigo_seguranca codigo_verificacao codigo_secreto frase_semente frase_recuperacao
    chave_privada chave_secreta chave_api chave_acesso string_conexao cadeia_conexao

    privater_schlussel geheimer_schlussel api_schlussel sicherheits_code

    kata_sandi kata_kunci_rahasia nomor_kartu nomor_rekening kode_keamanan kode_verifikasi
    kunci_privat kunci_api kunci_rahasia frasa_pemulihan
""")
"""Adjacent words that indicate a secret, in the same languages; "_" separates the words."""

_WHOLE: Final = frozenset({"clave", "sicherheitscode", "prufziffer", "prufnummer"})
"""Words that indicate a secret only if they are the whole name: "palabra clave" is a keyword."""

_KEYS: Final = frozenset(
    {"api", "private", "secret", "access", "signing", "encryption", "master", "ssh", "account"}
)
"""Words before "key" that make it a cryptographic key, not the key of a map."""

_COUNTED: Final = frozenset({"count", "limit", "budget", "usage", "type", "size", "length"})
_PAGED: Final = frozenset({"page", "next", "previous", "continuation", "sync", "max", "min"})
"""Words after and before "token" that make it a token of text or of a page, not a credential."""

_FRAGMENTS: Final = _words("""
    密码 密碼 口令 密钥 密鑰 私钥 私鑰 助记词 助記詞 恢复短语 卡号 卡號 银行卡 银行账号 银行账户 銀行帳號 銀行帳戶
    账户号码 帳戶號碼 路由号码 安全码 安全碼 验证码 驗證碼 连接字符串 連接字串 访问令牌 存取權杖 登录凭证
    パスワード パスフレーズ 暗証番号 秘密鍵 カード番号 口座番号 セキュリティコード 認証コード 確認コード
    シードフレーズ リカバリーフレーズ 接続文字列 合言葉 APIキー アクセストークン 秘密の質問
    पासवर्ड कूटशब्द गुप्त_कोड गुप्त_शब्द गुप्त_कुंजी कार्ड_नंबर कार्ड_संख्या खाता_संख्या खाता_नंबर ओटीपी सीवीवी निजी_कुंजी
    सुरक्षा_कोड एटीएम_पिन पिन_नंबर
    كلمة_المرور كلمة_مرور كلمة_السر كلمة_سر الرقم_السري رقم_سري الرمز_السري رمز_سري رقم_البطاقة رقم_بطاقة
    رقم_الحساب رقم_حساب رمز_الأمان رمز_التحقق المفتاح_الخاص مفتاح_خاص المفتاح_السري عبارة_الاسترداد
    سلسلة_الاتصال آيبان
    পাসওয়ার্ড গোপন_কোড গোপন_শব্দ পিন_নম্বর কার্ড_নম্বর অ্যাকাউন্ট_নম্বর হিসাব_নম্বর ওটিপি সিভিভি ব্যক্তিগত_কী নিরাপত্তা_কোড
    парол пин-код пин_код пинкод секретн номер_карт номер_банковской_карт номер_счет номер_счёт
    расчетный_счет расчётный_счёт код_безопасности код_подтверждения одноразовый_код сид-фраз сид_фраз
    фраза_восстановлен фразу_восстановлен приватный_ключ закрытый_ключ api-ключ api_ключ ключ_api
    токен_доступа строка_подключения строку_подключения учетные_данные учётные_данные
    پاس_ورڈ پاسورڈ خفیہ_کوڈ کارڈ_نمبر اکاؤنٹ_نمبر سیکیورٹی_کوڈ او_ٹی_پی
""")
"""Fragments that indicate a secret: Chinese, Japanese, Hindi, Arabic, Bengali, Russian and Urdu.
"_" stands for a space."""


def looks_secret(name: str) -> bool:
    """Whether a name in camelCase, snake_case, kebab-case or words stands for a secret."""
    return _spoken(name) if len(name) > _LONGEST_CACHED else _cached(name)


@lru_cache(maxsize=4096)
def _cached(name: str) -> bool:
    return _spoken(name)


def _spoken(name: str) -> bool:
    if not name.isascii():
        name = _plain(name)
        if _FRAGMENT.search(name.lower()) is not None:
            return True
    words = [word.lower() for word in _WORD.findall(name)]
    return (
        not _WORDS.isdisjoint(words)
        or (len(words) == 1 and words[0] in _WHOLE)
        or any(_opens(words, at) for at in range(len(words)))
        or _has_phrase([word for word in words if word not in _FILLERS])
    )


def _plain(name: str) -> str:
    """Remove accents, invisible characters and compatibility forms."""
    visible = "".join(each for each in name if unicodedata.category(each) != "Cf")
    return _ACCENT.sub("", unicodedata.normalize("NFKD", visible)).replace("_", " ")


def _opens(words: Sequence[str], at: int) -> bool:
    before = words[at - 1] if at else ""
    after = words[at + 1] if at + 1 < len(words) else ""
    match words[at]:
        case "token":
            return after not in _COUNTED and before not in _PAGED
        case "key" | "keys":
            return before in _KEYS
        case _:
            return False


def _has_phrase(words: Sequence[str]) -> bool:
    """Whether the words contain a known phrase: as separate words, as one word, or in the plural."""
    return any(
        _in_singular(words[at : at + length]) in _KNOWN
        for at, word in enumerate(words)
        if word in _FIRST
        for length in (1, 2, 3)
    )


def _in_singular(words: Sequence[str]) -> str:
    return " ".join(word.removesuffix("s") for word in words)


_KNOWN: Final = frozenset(
    _in_singular(words)
    for phrase in _PHRASES
    for words in (phrase.split("_"), [phrase.replace("_", "")])
)
"""All phrases in the form of `_in_singular`, and each as one word, too."""
_FIRST: Final = frozenset(
    first for form in _KNOWN for first in (form.split()[0], form.split()[0] + "s")
)
_FRAGMENT: Final = re.compile("|".join(re.escape(_plain(each).lower()) for each in _FRAGMENTS))
